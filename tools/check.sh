#!/bin/sh
# npm run check: all static checks. Arguments select checks by name: npm run check -- types lint
cd "$(dirname "$0")/.."
. tools/setup.sh
need_tools

import_law() { node tools/import-law.ts; }
types() { tsc --noEmit -p .; }
lint() { biome check --error-on-warnings --max-diagnostics=none . && node tools/raw-time.ts; }
names() { node tools/names.ts; }
dead_code() { knip --no-progress; }
proto_lint() { buf lint proto; }
proto_breaking() {
  released=$(cat proto/released-at)
  if ! git cat-file -e "$released^{commit}" 2>/dev/null; then
    echo "the commit $released of proto/released-at is not in this clone: fetch the whole history (git fetch --unshallow)."
    # A shallow clone has no baseline to compare with, which is not a fault of its protos.
    [ "$(git rev-parse --is-shallow-repository)" = true ]
    return
  fi
  buf breaking proto --against ".git#ref=$released,subdir=proto"
}
openapi() { node tools/check-openapi.ts; }
generated() { sh tools/generate-code.sh --compare && sh tools/generate-sdk.sh --compare; }
prose() { node tools/prose/main.ts; }

check() {
  case $1 in
    proto_lint | proto_breaking | prose) ;;
    openapi | types | lint | import_law | names | dead_code | generated) need_sdk ;;
    *) stop "there is no check called $1." ;;
  esac
  step "check $1" "$1"
}

if [ $# -eq 0 ]; then
  set -- proto_lint proto_breaking openapi types lint import_law names dead_code generated prose
fi
for name in "$@"; do
  check "$name"
done
