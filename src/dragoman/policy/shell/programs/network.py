"""Which machines a command reaches, from its arguments; `?` stands for one that the words do not tell.

What curl and wget do with an option is a table. An option that is not in it may name a proxy or another address, so
the host is then not known: a rule on `hosts` does not allow it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.values import Arg

NOT_KNOWN = "?"

_URL = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]{1,40}://(?:[^/?#@\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^/:?#\s]+)"
)
_REMOTE = re.compile(r"(?:[A-Za-z0-9_.-]+@)?([A-Za-z0-9.-]+):(?!//).*", re.DOTALL)
_ADDRESS = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:[^/?#@\\\s]*@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]*)?"
    r"(?:/[^\\]*|[?#][^\\@]*)?",
    re.DOTALL,
)
"""An address that all readers of addresses take for the same one: no backslash, no blank, no pattern in the name."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PLAIN_NAME = re.compile(r"[a-z0-9._-]+")
_BRACKETED = re.compile(r"\[[0-9a-f:.]+\]", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OTHER_SPELLING = re.compile(r"[%{}\[\]]|[^\x00-\x7f]")
"""Encoded characters, patterns of curl, and letters that names are made plain from."""
LAST_PORT = 65535
_HOST_FIRST = frozenset(
    {"ssh", "ping", "ping6", "nc", "ncat", "telnet", "dig", "nslookup", "host", "traceroute", "whois", "mosh"}
)
_COPIERS = frozenset({"scp", "rsync", "git", "sftp"})
_NETWORK = _HOST_FIRST | {"curl", "wget", "scp", "rsync", "sftp", "ftp"}
_GIT_REMOTE = frozenset({"clone", "fetch", "pull", "push", "ls-remote", "remote"})
_LOOSE = names(
    """
    http https xh httpie aria2c lynx links w3m axel grpcurl websocat nmap openssl curlie httping mtr tracepath
    """
)
"""Programs of which any word may be an address."""
_SSH_TAKES = "BbcDEeFIiJLlmOoPpQRSWw"
_SSH_ELSEWHERE = re.compile(r"-[A-Za-z46]*[JWLRDw]")
"""Options of ssh by which it reaches, or lets others reach, another machine."""


@dataclass(frozen=True, slots=True)
class Client:
    """Options of a program that fetches addresses: those with a value, those without, and those with an address."""

    flags: str
    takes: str
    addresses: str
    long_flags: frozenset[str]
    long_takes: frozenset[str]
    long_addresses: frozenset[str]


CLIENTS = {
    "curl": Client(
        flags="fsSLkvgiIGjJRNOaBlMnpqZV#012346h",
        takes="XHduAbFmerUwyYzQPtETCocDK",
        addresses="x",
        long_flags=names(
            """
            fail fail-with-body fail-early silent show-error location location-trusted insecure verbose include
            show-headers head get compressed progress-bar no-progress-meter http0.9 http1.0 http1.1 http2 http3
            http2-prior-knowledge ipv4 ipv6 no-buffer globoff no-keepalive tcp-nodelay tcp-fastopen raw
            remote-name remote-name-all remote-header-name remote-time ssl ssl-reqd sslv2 sslv3 tlsv1 tlsv1.0
            tlsv1.1 tlsv1.2 tlsv1.3 create-dirs anyauth basic digest ntlm negotiate netrc netrc-optional disable
            parallel post301 post302 post303 retry-all-errors retry-connrefused styled-output version help
            path-as-is append list-only no-clobber remove-on-error xattr cert-status manual next junk-session-cookies
            """
        ),
        long_takes=names(
            """
            request header data data-ascii data-binary data-raw data-urlencode json user user-agent cookie form
            form-string max-time connect-timeout referer range write-out retry retry-delay retry-max-time
            max-redirs max-filesize limit-rate output upload-file cacert capath cert cert-type key key-type pass
            ciphers tls-max tls13-ciphers curves cookie-jar dump-header continue-at time-cond speed-limit
            speed-time output-dir oauth2-bearer aws-sigv4 create-file-mode expect100-timeout keepalive-time
            netrc-file parallel-max proto proto-redir request-target trace trace-ascii stderr etag-save
            etag-compare rate url-query quote ftp-method
            """
        ),
        long_addresses=names("proxy preproxy socks4 socks4a socks5 socks5-hostname proxy1.0 url"),
    ),
    "wget": Client(
        flags="qvcnNSdbrpkKmxhVLEF46",
        takes="OPUTtwQoaAlRXI",
        addresses="",
        long_flags=names(
            """
            quiet verbose no-verbose no-clobber continue timestamping server-response debug background recursive
            page-requisites convert-links backup-converted mirror force-directories no-directories no-host-directories
            no-parent no-check-certificate content-disposition content-on-error trust-server-names
            adjust-extension spider show-progress inet4-only inet6-only no-cookies no-cache https-only help version
            no-proxy keep-session-cookies no-hsts no-netrc unlink
            """
        ),
        long_takes=names(
            """
            output-document directory-prefix user-agent timeout tries wait waitretry random-wait quota output-file
            append-output accept reject level header referer user password http-user http-password method body-data
            post-data post-file body-file limit-rate max-redirect dns-timeout connect-timeout read-timeout
            retry-on-http-error ca-certificate certificate private-key load-cookies save-cookies cut-dirs
            include-directories exclude-directories accept-regex reject-regex progress compression start-pos
            """
        ),
        long_addresses=frozenset(),
    ),
}


def hosts(program: str, words: list[Arg]) -> Iterator[str]:
    """Names of machines in the arguments of a program, each in one spelling."""
    return (_spelled(program, host) for host in _told(program, words))


def _spelled(program: str, host: str) -> str:
    """A name in the spelling that rules have; not known if programs may read another name out of it."""
    if host == NOT_KNOWN or (host.startswith("[") and _BRACKETED.fullmatch(host)):
        return host
    if not _PLAIN_NAME.fullmatch(host):
        # Words of programs such as `dig name +short` are looked at as if each were a host.
        return host if program in _HOST_FIRST and not _OTHER_SPELLING.search(host) else NOT_KNOWN
    name = host.rstrip(".")
    if not _NUMBER.fullmatch(name.rpartition(".")[2]):
        return name
    try:
        return socket.inet_ntoa(socket.inet_aton(name))  # also `0xA9FEA9FE`, `2852039166` and `169.254.43518`
    except OSError:
        return NOT_KNOWN


def _told(program: str, words: list[Arg]) -> Iterator[str]:
    for arg in words:
        if arg.values is None and program in _NETWORK:
            yield NOT_KNOWN
        for value in arg.values if arg.values is not None else (arg.prefix,):
            if "://" in value:
                yield from (match[1].lower() for match in _URL.finditer(value) if not _is_file(match[0]))
            if (
                program in _COPIERS
                and (program != "git" or "@" in value)
                and (found := _REMOTE.fullmatch(value))
            ):
                yield found[1].lower()
    if (client := CLIENTS.get(program)) is not None:
        yield from _of_client(program, client, words)
    elif program in _HOST_FIRST:
        yield from _first(program, words)
    elif program == "git":
        yield from _of_git(words)
    elif program in _LOOSE:
        yield from (host for arg in words for text in arg.values or () if "." in (host := _host(text)))


def _of_git(words: list[Arg]) -> Iterator[str]:
    """`git clone host:path`; elsewhere `a:b` are names of branches."""
    plain = [arg.text for arg in words if not arg.text.startswith("-")]
    at = next((at for at, text in enumerate(plain) if text in _GIT_REMOTE), len(plain))
    for text in plain[at + 1 :] if plain[at : at + 1] == ["remote"] else plain[at + 1 : at + 2]:
        if (found := _REMOTE.fullmatch(text)) is not None:
            yield found[1].lower()


def has_address(text: str) -> bool:
    """Whether a word has the address of another machine in it, and so is no path."""
    return "://" in text and (found := _URL.search(text)) is not None and not _is_file(found[0])


def path_of(text: str) -> str:
    """The path in `file:` addresses, which curl, git and package managers read; other text as it is."""
    if not _is_file(text):
        return text
    path = unquote(text[5:])
    return "/" + path[2:].partition("/")[2] if path.startswith("//") else path


def _is_file(address: str) -> bool:
    return address[:5].lower() == "file:"


def _first(program: str, words: list[Arg]) -> Iterator[str]:
    """`ssh -p 22 host command`: the first word that is no option. Of other programs each word may be the host."""
    skip = False
    for arg in words:
        text = arg.only or ""
        if skip:
            skip = False
        elif text.startswith("-") and text != "-":
            if program == "ssh" and _SSH_ELSEWHERE.match(text):
                yield NOT_KNOWN
            skip = program == "ssh" and len(text) == 2 and text[1] in _SSH_TAKES
        elif not (text.isdigit() and int(text[:9]) <= LAST_PORT and len(text) < 9):
            yield arg.text.lstrip("@").rpartition("@")[2].lower()
            if program == "ssh":
                return


def _of_client(program: str, client: Client, words: list[Arg]) -> Iterator[str]:
    expected = ""  # what the next word is: a value, an address, or not an option's at all
    options = True
    for arg in words:
        for text in arg.values or ():
            if expected:
                yield from [_host(text)] if expected == "address" else ()
            elif options and text.startswith("-") and text != "-":
                yield from _of_option(client, text)
            else:
                yield _host(text)
        if arg.only is not None:
            expected = "" if expected or not options else _expects(client, arg.only)
            options = options and arg.only != "--"


def _expects(client: Client, text: str) -> str:
    """What follows an option as a word of its own."""
    if text.startswith("--"):
        name = text[2:]
        return "value" if name in client.long_takes else "address" if name in client.long_addresses else ""
    for at, letter in enumerate(text[1:] if text.startswith("-") else "", 2):
        if letter in client.takes + client.addresses:
            rest = "address" if letter in client.addresses else "value"
            return rest if at == len(text) else ""
    return ""


def _of_option(client: Client, text: str) -> Iterator[str]:
    """The host in an option itself, `?` for an option that is not known."""
    if text.startswith("--"):
        name, equals, value = text[2:].partition("=")
        if name in client.long_addresses:
            yield from [_host(value)] if equals else ()
        elif name and name not in client.long_flags | client.long_takes:
            yield NOT_KNOWN
        return
    for at, letter in enumerate(text[1:], 2):
        if letter in client.flags:
            continue
        if letter in client.addresses and text[at:]:
            yield _host(text[at:])
        elif letter not in client.takes + client.addresses:
            yield NOT_KNOWN
        return


def _host(text: str) -> str:
    """The host of an address that a client is given; one that may be read in two ways is not known."""
    if _is_file(text):
        return "localhost"
    found = _ADDRESS.fullmatch(text)
    if found is None or (found.start(1) == 0 and _SCHEME.match(text)):  # the name of a scheme is no host
        return NOT_KNOWN
    return found[1].lower().rstrip(".")
