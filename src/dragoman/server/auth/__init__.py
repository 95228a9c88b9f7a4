"""Who a request comes from: tokens, browsers' logins, checked hosts and origins."""
