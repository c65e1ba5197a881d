# Servers that tests use besides PostgreSQL, which is an npm package. Sourced after setup.sh.

# Package and command of each server. Debian's daemons are in sbin, which may not be on a user's PATH.
test_servers="redis-server:redis-server squid:squid tinyproxy:tinyproxy dante-server:danted postgresql:pg_ctlcluster iproute2:ip openssl:openssl"

# Prints the missing packages.
missing_test_servers() {
  for server in $test_servers; do
    PATH="$PATH:/usr/sbin:/sbin" command -v "${server#*:}" >/dev/null || printf '%s ' "${server%%:*}"
  done
}

# Installs packages without starting their services. Tests start each on its own port.
install_quietly() {
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# `$missing` is unquoted, so that the shell splits it into packages.
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

# Runs in a subshell, so that its trap does not replace the trap of the step.
install_in_subshell() (
  install_quietly "$@"
)
