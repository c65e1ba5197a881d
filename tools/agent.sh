#!/bin/sh
# npm run agent -- "<what to do>": has an agent of the running service do something, and prints its steps.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
need_code
exec node tools/agent.ts "$@"
