#!/bin/sh
# Starts a browser inside its isolation slot by exec. The CDP pipe on descriptors 3 and 4 is inherited, and the arguments are
# passed to the browser. The browser does not see these variables:
#   PILOTHOUSE_BROWSER   path of the real binary (a distribution's start script would remain as parent process)
#   PILOTHOUSE_CONFINE   command that enters the namespace and drops to the slot's uid; words must not contain spaces
#   PILOTHOUSE_RECORD    file to which to write the process record
#   PILOTHOUSE_TASKS     maximum number of tasks of the slot's uid; empty if the slot has no uid
set -eu
umask 077
ulimit -c 0

browser=$PILOTHOUSE_BROWSER
confine=$PILOTHOUSE_CONFINE
record=$PILOTHOUSE_RECORD
tasks=$PILOTHOUSE_TASKS
unset PILOTHOUSE_BROWSER PILOTHOUSE_CONFINE PILOTHOUSE_RECORD PILOTHOUSE_TASKS

# bash uses -u; dash and busybox use -p.
if [ -n "$tasks" ]; then
  ulimit -u "$tasks" 2>/dev/null || ulimit -p "$tasks" 2>/dev/null || true
fi
# If memory runs out, the kernel kills browsers before the worker. Chromium sets 300 for its renderers.
{ echo 200 > /proc/self/oom_score_adj; } 2>/dev/null || true

# Pid with start time, because the kernel reuses pids.
if [ -r "/proc/$$/stat" ]; then
  read -r stat < "/proc/$$/stat"
else
  stat=$$
fi
printf '%s\n' "$stat" > "$record"

# Word splitting of the command is intended.
# shellcheck disable=SC2086
exec $confine "$browser" "$@"
