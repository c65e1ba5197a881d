#!/bin/sh
# npm test: prepares the machine and runs the tests. Tiers may be given first (npm test -- unit service); default: the
# four tiers of CI. The project `alone` is part of the tier `system`. Other arguments are passed to vitest.
cd "$(dirname "$0")/.."
. tools/setup.sh
. tools/test-servers.sh

# Succeeds if a change since the given commit (default: HEAD) affects tests that start the system as processes and
# import none of its modules.
changes_the_system() {
  ! git diff --quiet "$1" -- src gateway workers || [ -n "$(git ls-files --others --exclude-standard src gateway workers)" ]
}

# Deletes the data that killed runs left in memory. Directories are named after the process that created them.
for directory in /dev/shm/pilothouse-test-*; do
  creator=${directory#*pilothouse-test-}
  [ ! -d "$directory" ] || kill -0 "${creator%%-*}" 2>/dev/null || rm -rf "$directory"
done

tiers=
for argument in "$@"; do
  case $argument in
    system) tiers="$tiers --project=system --project=alone" ;;
    unit | service | browser | long | chromium | whole) tiers="$tiers --project=$argument" ;;
    *) break ;;
  esac
  shift
done

since=
for argument in "$@"; do
  case $argument in
    --changed) since=HEAD ;;
    --changed=*) since=${argument#*=} ;;
  esac
done

set_up
need_test_servers
if [ -z "$tiers" ] && [ -n "$since" ] && changes_the_system "$since"; then
  status=0
  vitest run --project=unit --project=service --project=browser "$@" || status=$?
  vitest run --project=system --project=alone || status=$?
  exit "$status"
fi
# Unquoted, so that each tier becomes an argument.
# shellcheck disable=SC2086
exec vitest run ${tiers:---project=unit --project=service --project=browser --project=system --project=alone} "$@"
