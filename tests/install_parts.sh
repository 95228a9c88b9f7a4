#!/bin/sh
# Installs what the tests need beside Python, where that is allowed, and says how to get what is still missing.
# `tests/install_parts.sh long` also installs what only `make test-long` needs.

parts='bwrap=bubblewrap /usr/sbin/sshd=openssh-server ssh=openssh-client podman=podman /usr/sbin/runc=runc'
[ "$1" = long ] && parts="$parts mmdebstrap=mmdebstrap /usr/lib/cni/dnsname=golang-github-containernetworking-plugin-dnsname nvim=neovim emacs=emacs-nox systemd-analyze=systemd"

lacking() {
	for part in $parts; do
		command -v "${part%%=*}" >/dev/null 2>&1 || printf ' %s' "${part#*=}"
	done
}

wanted=$(lacking)
[ -z "$wanted" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "Installing$wanted for the tests…"
	export DEBIAN_FRONTEND=noninteractive
	timeout 300 apt-get update -qq >/dev/null 2>&1
	# shellcheck disable=SC2086  # a list of words
	timeout 600 apt-get install -y -qq --no-install-recommends $wanted >/dev/null 2>&1
	# Where one has no package, apt installs none of them: then each by itself.
	for package in $(lacking); do
		timeout 300 apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1
	done
	wanted=$(lacking)
fi
[ -z "$wanted" ] || echo "NOT INSTALLED:$wanted; tests that need them are skipped (as root: apt-get install$wanted)"
exit 0
