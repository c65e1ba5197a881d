#!/bin/sh
# Becomes a browser inside its slot. Playwright starts this in place of the browser and owns the debugging pipe on the
# descriptors 3 and 4, which pass through every exec below. What to do comes in variables, because the arguments are
# Playwright's:
#   PILOTHOUSE_BROWSER   the real binary (a distribution's start script would stay between us and the browser)
#   PILOTHOUSE_CONFINE   the command, words without spaces, that enters the namespace and drops to the slot's uid
#   PILOTHOUSE_RECORD    where to note this process, which the browser replaces
#   PILOTHOUSE_TASKS     how many tasks the slot's uid may have at once; empty where the slot has none of its own
#   PILOTHOUSE_PROFILE   "none": the browser keeps nothing, and Playwright's empty directory goes away at once
#   PILOTHOUSE_AWAITED   a file to wait for, at most 10 s, before the browser starts; or empty
set -eu
umask 077
ulimit -c 0

browser=$PILOTHOUSE_BROWSER
confine=$PILOTHOUSE_CONFINE
record=$PILOTHOUSE_RECORD
profile=$PILOTHOUSE_PROFILE
tasks=$PILOTHOUSE_TASKS
awaited=$PILOTHOUSE_AWAITED
unset PILOTHOUSE_BROWSER PILOTHOUSE_CONFINE PILOTHOUSE_RECORD PILOTHOUSE_PROFILE PILOTHOUSE_TASKS PILOTHOUSE_AWAITED

enabled=
disabled=
for argument do
  shift
  case $argument in
    --user-data-dir=*)
      if [ "$profile" = none ]; then
        rmdir -- "${argument#--user-data-dir=}"
        continue
      fi
      ;;
    --enable-features=*)
      enabled=$enabled,${argument#--enable-features=}
      continue
      ;;
    --disable-features=*)
      disabled=$disabled,${argument#--disable-features=}
      continue
      ;;
  esac
  set -- "$@" "$argument"
done
# Chromium obeys the last of several such lists alone: Playwright's and ours become one.
set -- "$@" "--enable-features=${enabled#,}" "--disable-features=${disabled#,}"

# Shells spell it differently: -u is bash's, -p dash's and busybox's.
if [ -n "$tasks" ]; then
  ulimit -u "$tasks" 2>/dev/null || ulimit -p "$tasks" 2>/dev/null || true
fi
# When a machine is out of memory its kernel takes a browser before the worker. Chromium gives its renderers 300.
{ echo 200 > /proc/self/oom_score_adj; } 2>/dev/null || true

# The pid with its start time, read by the shell itself: a pid alone may later be another process.
if [ -r "/proc/$$/stat" ]; then
  read -r stat < "/proc/$$/stat"
else
  stat=$$
fi
printf '%s\n' "$stat" > "$record"

# Some 5 ms a turn.
tries=2000
while [ -n "$awaited" ] && [ ! -e "$awaited" ]; do
  tries=$((tries - 1))
  [ "$tries" -gt 0 ] || exit 1
  sleep 0.002
done

# The words of the command are meant to be split.
# shellcheck disable=SC2086
exec $confine "$browser" "$@"
