#!/bin/sh
# npm test: readies the machine and runs the tests. Tiers may come first (npm test -- unit service), which are the
# four that CI runs otherwise; other arguments go to vitest.
cd "$(dirname "$0")/.."
. tools/setup.sh
. tools/test-servers.sh

# Says whether a change since a commit (by default, an uncommitted one) can be seen by tests that import nothing of it:
# those of the system start it as processes.
changes_the_system() {
  ! git diff --quiet "$1" -- src gateway workers || [ -n "$(git ls-files --others --exclude-standard src gateway workers)" ]
}

tiers=
for argument in "$@"; do
  case $argument in
    unit | service | browser | system | long | chromium) tiers="$tiers --project=$argument" ;;
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
  vitest run --project=system || status=$?
  exit "$status"
fi
# Each tier is a word.
# shellcheck disable=SC2086
exec vitest run ${tiers:---project=unit --project=service --project=browser --project=system} "$@"
