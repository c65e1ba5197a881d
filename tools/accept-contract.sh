#!/bin/sh
# npm run accept-contract: makes the contract as it is now the one that `npm run check` compares with. Only services that
# are served count: what is not built yet may still change its shape.
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools
need_code
# Unquoted: an option for each service.
exec buf build proto --exclude-source-info -o proto/contract.binpb $(node tools/served-types.ts)
