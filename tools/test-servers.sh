# The servers that tests talk to, beside the PostgreSQL that comes with the npm packages. Sourced after setup.sh.

# Package and command of each; the commands of Debian's daemons are in sbin, which an ordinary user's PATH may lack.
test_servers="redis-server:redis-server squid:squid tinyproxy:tinyproxy dante-server:danted postgresql:pg_ctlcluster iproute2:ip openssl:openssl"

# Which packages are missing.
missing_test_servers() {
  for server in $test_servers; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${server#*:}" >/dev/null || printf '%s ' "${server%%:*}"
  done
}

# Installs packages without starting their services: a test runs each on a port of its own.
install_quietly() {
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# The words of the list are packages, and are meant to be split.
# shellcheck disable=SC2046,SC2086
need_test_servers() {
  missing=$(missing_test_servers)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    step "installing servers for the tests (${missing% })" install_in_subshell $missing || true
    missing=$(missing_test_servers)
  fi
  [ -z "$missing" ] || stop "the tests need ${missing% }: install them (sudo apt-get install ${missing% }) and start again."
}

# In a subshell, so that its trap does not replace the step's own.
install_in_subshell() (
  install_quietly "$@"
)
