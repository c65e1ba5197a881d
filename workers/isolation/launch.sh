#!/bin/sh
# Becomes a browser inside its slot: its debugging pipe, on the descriptors 3 and 4, passes through every exec below, and
# the arguments are the browser's. What else to do comes in variables, which the browser does not see:
#   PILOTHOUSE_BROWSER   the real binary (a distribution's start script would stay between us and the browser)
#   PILOTHOUSE_CONFINE   the command, words without spaces, that enters the namespace and drops to the slot's uid
#   PILOTHOUSE_RECORD    where to note this process, which the browser replaces
#   PILOTHOUSE_TASKS     how many tasks the slot's uid may have at once; empty where the slot has none of its own
set -eu
umask 077
ulimit -c 0

browser=$PILOTHOUSE_BROWSER
confine=$PILOTHOUSE_CONFINE
record=$PILOTHOUSE_RECORD
tasks=$PILOTHOUSE_TASKS
unset PILOTHOUSE_BROWSER PILOTHOUSE_CONFINE PILOTHOUSE_RECORD PILOTHOUSE_TASKS

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

# The words of the command are meant to be split.
# shellcheck disable=SC2086
exec $confine "$browser" "$@"
