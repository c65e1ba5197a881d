#!/bin/sh
# Becomes a browser inside its slot. Playwright starts this in place of the browser and owns the debugging pipe on the
# descriptors 3 and 4, which pass through every exec below. What to do comes in variables, because the arguments are
# Playwright's:
#   PILOTHOUSE_BROWSER   the real binary (a distribution's start script would stay between us and the browser)
#   PILOTHOUSE_CONFINE   the command, words without spaces, that enters the namespace and drops to the slot's uid
#   PILOTHOUSE_RECORD    where to note this process, which the browser replaces
#   PILOTHOUSE_PROFILE   "none": the browser keeps nothing, and Playwright's empty directory goes away at once
set -eu
umask 077
ulimit -c 0

browser=$PILOTHOUSE_BROWSER
confine=$PILOTHOUSE_CONFINE
record=$PILOTHOUSE_RECORD
profile=$PILOTHOUSE_PROFILE
unset PILOTHOUSE_BROWSER PILOTHOUSE_CONFINE PILOTHOUSE_RECORD PILOTHOUSE_PROFILE

features=
for argument do
  shift
  case $argument in
    --user-data-dir=*)
      if [ "$profile" = none ]; then
        rmdir -- "${argument#--user-data-dir=}"
        continue
      fi
      ;;
    --disable-features=*)
      features=$features,${argument#--disable-features=}
      continue
      ;;
  esac
  set -- "$@" "$argument"
done
# Chromium obeys the last of several such lists alone: Playwright's and ours become one.
set -- "$@" "--disable-features=${features#,}"

# The pid with its start time, read by the shell itself: a pid alone may later be another process.
if [ -r "/proc/$$/stat" ]; then
  read -r stat < "/proc/$$/stat"
else
  stat=$$
fi
printf '%s\n' "$stat" > "$record"

# The words of the command are meant to be split.
# shellcheck disable=SC2086
exec $confine "$browser" "$@"
