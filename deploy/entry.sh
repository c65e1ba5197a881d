#!/bin/sh
# Entry point of the images. The first argument is the process to run, or a command of the operator.
set -eu
cd /app

# A runtime's default seccomp profile forbids the namespaces that browsers run in.
need_namespaces() {
  [ "${ISOLATION:-namespace}" = namespace ] || return 0
  unshare --user --map-root-user --net chroot / true 2>/dev/null && return 0
  cat >&2 <<'END'
pilothouse: browsers cannot be isolated in this container. Start it with:
  docker run --rm IMAGE seccomp > pilothouse-seccomp.json
  docker run --security-opt seccomp=pilothouse-seccomp.json --cap-drop ALL --security-opt no-new-privileges --shm-size 2g -p 127.0.0.1:8080:8080 -v pilothouse:/data IMAGE
END
  exit 1
}

# A worker without WORKER_ADDRESS is reached by the address of its container.
own_address() {
  address=$(hostname -i) && echo "${address%% *}:${WORKER_LISTEN##*:}"
}

command=${1:-}
[ $# -eq 0 ] || shift
case $command in
  start) need_namespaces && exec node gateway/main.ts "$@" ;;
  gateway) exec node gateway/main.ts "$@" ;;
  control) ROLE=control exec node gateway/main.ts "$@" ;;
  worker)
    [ -z "${WORKER_LISTEN:-}" ] || export WORKER_ADDRESS="${WORKER_ADDRESS:-$(own_address)}"
    exec node workers/main.ts "$@"
    ;;
  admin) exec node tools/admin.ts "$@" ;;
  env) exec node deploy/env.ts ;;
  seccomp) exec cat deploy/seccomp.json ;;
esac
echo "pilothouse: expected start, gateway, control, worker, admin, env or seccomp, got \"$command\"" >&2
exit 2
