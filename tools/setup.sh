# Prepares a fresh machine to run the project. Sourced by the scripts of this folder, from the root of the checkout.
# Prints a line per step, and nothing if the machine is up to date. Stops with one sentence if a requirement is missing.

stop() {
  printf 'pilothouse: %s\n' "$1" >&2
  exit 1
}

# Shows the seconds of a step on a terminal while the script runs.
tick() {
  while sleep 1 && kill -0 $$ 2>/dev/null; do
    printf '\rpilothouse: %s ... %s s' "$1" $(($(date +%s) - $2)) >&2
  done
}

end_step() {
  if [ -n "$step_ticker" ]; then
    kill "$step_ticker" 2>/dev/null || true
    wait "$step_ticker" 2>/dev/null || true
    step_ticker=
  fi
  rm -f "$step_log"
}

# step <title> <command...>: runs a command, and shows one line with its duration. Shows the output if the command
# fails, and output to descriptor 4 at once.
step() {
  step_title=$1
  shift
  step_log=$(mktemp)
  step_began=$(date +%s)
  step_ticker=
  step_status=0
  trap 'end_step; exit 130' INT TERM HUP
  printf 'pilothouse: %s ...' "$step_title" >&2
  if [ -t 2 ]; then
    tick "$step_title" "$step_began" &
    step_ticker=$!
  fi
  "$@" 4>&2 >"$step_log" 2>&1 </dev/null || step_status=$?
  if [ "$step_status" -eq 0 ]; then
    step_result="$(($(date +%s) - step_began)) s"
  else
    step_result="failed"
  fi
  [ ! -t 2 ] || printf '\rpilothouse: %s ...' "$step_title" >&2
  printf ' %s\n' "$step_result" >&2
  [ "$step_status" -eq 0 ] || cat "$step_log" >&2
  end_step
  trap - INT TERM HUP
  return "$step_status"
}

need_platform() {
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64 | Linux-aarch64 | Linux-arm64 | Darwin-x86_64 | Darwin-arm64) ;;
    *) stop "this is $(uname -s) on $(uname -m), and Linux or macOS on x64 or arm64 is needed." ;;
  esac
}

# Packages are current if the lock file is the last installed one, or is not newer than npm's record of installed
# packages, which `npm install` also updates.
packages_are_current() {
  cmp -s package-lock.json node_modules/.installed-lock.json && return 0
  [ -f node_modules/.package-lock.json ] && [ -z "$(find package-lock.json -newer node_modules/.package-lock.json)" ]
}

need_packages() {
  packages_are_current && return 0
  { command -v node && command -v npm; } >/dev/null ||
    stop "Node.js or npm is missing: install both from https://nodejs.org and start again."
  # Shows only errors: with an older Node, npm warns about engines that are not used. PREPARE=off: need_code generates the
  # code, as its own step.
  step "installing packages" env PREPARE=off npm ci --loglevel=error --no-audit --no-fund ||
    stop "the packages could not be installed; npm's reason is above."
  cp package-lock.json node_modules/.installed-lock.json
}

# Puts the first Node 24 or later of the packages or the PATH first on the PATH. npm's Node binaries need glibc.
need_node() {
  search="$PWD/node_modules/.bin:$PATH"
  saved_separator=$IFS
  IFS=:
  for directory in $search; do
    [ -x "$directory/node" ] || continue
    major=$("$directory/node" -p 'process.versions.node.split(".")[0]' 2>/dev/null) || continue
    if [ "$major" -ge 24 ]; then
      IFS=$saved_separator
      PATH="$directory:$PWD/node_modules/.bin:$PATH"
      export PATH
      return 0
    fi
  done
  IFS=$saved_separator
  stop "Node.js 24 or later is needed and npm has none for this machine: install it from https://nodejs.org."
}

# Also compares the times of directories, so that the removal of a proto file causes a generation.
need_code() {
  if [ -f src/gen/.stamp ] &&
    [ -z "$(find proto gateway/web workers/injected tools/bundle-injected.ts buf.gen.yaml package-lock.json -newer src/gen/.stamp)" ]; then
    return 0
  fi
  step "generating code" sh tools/generate-code.sh ||
    stop "the code could not be generated; the reason is above."
}

need_console() {
  need_code
  if [ -f dist/console/.stamp ] &&
    [ -z "$(find console src/gen/.stamp package-lock.json -newer dist/console/.stamp)" ]; then
    return 0
  fi
  step "building the console" sh tools/build-console.sh ||
    stop "the console could not be built; the reason is above."
}

# The types of the SDK, which the service does not need.
need_sdk() {
  need_code
  types=sdk/typescript/src/gen/schema.ts
  inputs="src/gen/.stamp src/platform/browsers gateway/openapi tools/sdk-document.ts sdk/typescript/package-lock.json"
  if [ -f $types ] &&
    [ -z "$(find $inputs -newer $types)" ]; then
    return 0
  fi
  step "generating the types of the SDK" sh tools/generate-sdk.sh ||
    stop "the types of the SDK could not be generated; the reason is above."
}

# Stops before packages are installed if no browser can be installed.
foresee_browser() {
  packages_are_current || ! command -v node >/dev/null || node tools/foresee-browser.mjs || exit 1
}

need_browser() {
  # Node's fetch uses HTTPS_PROXY, as Playwright's download does, only with this option.
  plan=$(NODE_USE_ENV_PROXY=1 node tools/find-browser.ts plan) || exit 1
  [ -n "$plan" ] || return 0
  step "$plan" env NODE_USE_ENV_PROXY=1 NOTES_FD=4 node tools/find-browser.ts install || true
  node tools/find-browser.ts report || exit 1
}

# Caches compiled code if the directory is writable. The cache reduces the start to a third of the time.
keep_compiled() {
  NODE_COMPILE_CACHE="$PWD/.cache/compiled"
  export NODE_COMPILE_CACHE
}

# Requirements of every script.
need_tools() {
  need_platform
  need_packages
  need_node
  keep_compiled
}

# Requirements of running the project, including a browser.
set_up() {
  foresee_browser
  need_tools
  need_code
  need_console
  need_browser
}

set -eu
