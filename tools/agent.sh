#!/bin/sh
# npm run agent -- "<instruction>": runs an agent on the service, and prints its steps.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
need_code
exec node tools/agent.ts "$@"
