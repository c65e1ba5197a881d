#!/bin/bash
# A Kubernetes of one node with KEDA for tests: node.sh up|down DIRECTORY, with the programs in PATH. Runs in a network namespace without
# uplink and in a mount namespace, so that nothing of the machine changes. DIRECTORY keeps the images of the last run.
set -euo pipefail
command=$1 directory=$2
address=10.77.0.1 api=10.79.0.1 pods=10.78.0.0/24 services=10.79.0.0/16
socket=$directory/run/containerd.sock

inside() { nsenter --target "$(cat "$directory/pid/holder")" --net --mount -- "$@"; }
# Every program is run by exec, so that the noted process is the program itself.
run() {
  local name=$1
  shift
  setsid nsenter --target "$(cat "$directory/pid/holder")" --net --mount -- "$@" </dev/null >"$directory/log/$name.log" 2>&1 &
  echo $! >"$directory/pid/$name"
}
wait_for() {
  for _ in $(seq 600); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.2
  done
  echo "expected success, got two minutes of failures: $*; see $directory/log" >&2
  exit 1
}
images() { inside ctr --address "$socket" --namespace k8s.io "$@"; }

make_namespaces() {
  setsid unshare --net --mount --propagation private sleep infinity </dev/null >/dev/null 2>&1 &
  echo $! >"$directory/pid/holder"
  # Until then it is in the machine's own namespaces.
  wait_for grep -qx sleep "/proc/$!/comm"
  inside sh -euc '
    ip link set lo up
    ip link add node0 type veth peer name uplink0
    ip link set uplink0 up
    ip address add "$1/24" dev node0
    ip link set node0 up
    # For addresses of Services. It leads nowhere.
    ip route add default dev node0
    sysctl --quiet --write net.ipv4.ip_forward=1
    mkdir -p /var/lib/kubelet
    mount --bind "$0/kubelet" /var/lib/kubelet
    mount --bind "$0/log" /var/log
    mount -t tmpfs tmpfs /run
    mount --bind "$0/resolv.conf" /etc/resolv.conf
    # The kubelet writes these for the whole machine. It finds what it wants here.
    for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
      kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
      file=$0/sysctl/$(basename "${pair%=*}")
      echo "${pair#*=}" >"$file"
      mount --bind "$file" "/proc/sys/${pair%=*}"
    done
    # Mounts of the kubelet reach the containers.
    mount --make-rshared /' "$directory" "$address"
}

make_certificates() {
  cd "$directory/pki"
  new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
  new_key authority
  openssl req -x509 -new -key authority.key -subj /CN=authority -days 30 -out authority.crt
  certificate() {
    new_key "$1"
    openssl req -new -key "$1.key" -subj "$2" | openssl x509 -req -CA authority.crt -CAkey authority.key -CAcreateserial \
      -days 30 -out "$1.crt" -extfile <(printf 'subjectAltName=%s\n' "$3") 2>/dev/null
  }
  certificate server /CN=server "DNS:kubernetes.default.svc,IP:$api,IP:$address"
  certificate admin /O=system:masters/CN=admin DNS:admin
  certificate aggregator /CN=aggregator DNS:aggregator
  certificate keda/tls /CN=keda "DNS:keda.kube-system.svc,IP:$address"
  cp authority.crt keda/ca.crt
  cat >admin.conf <<END
apiVersion: v1
kind: Config
clusters: [{ name: cluster, cluster: { server: "https://$address:6443", certificate-authority: $PWD/authority.crt } }]
users: [{ name: admin, user: { client-certificate: $PWD/admin.crt, client-key: $PWD/admin.key } }]
contexts: [{ name: admin, context: { cluster: cluster, user: admin } }]
current-context: admin
END
}

start_control_plane() {
  local pki=$directory/pki
  run etcd etcd --data-dir "$directory/etcd" --unsafe-no-fsync --log-level warn
  run apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --advertise-address=$address --service-cluster-ip-range=$services \
    --authorization-mode=RBAC --allow-privileged=true --client-ca-file="$pki/authority.crt" \
    --tls-cert-file="$pki/server.crt" --tls-private-key-file="$pki/server.key" \
    --kubelet-client-certificate="$pki/admin.crt" --kubelet-client-key="$pki/admin.key" \
    --kubelet-preferred-address-types=InternalIP --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file="$pki/server.key" --service-account-signing-key-file="$pki/server.key" \
    --requestheader-client-ca-file="$pki/authority.crt" --requestheader-allowed-names=aggregator \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --proxy-client-cert-file="$pki/aggregator.crt" --proxy-client-key-file="$pki/aggregator.key"
  wait_for inside kubectl get --raw /readyz
  run controllers kube-controller-manager --kubeconfig="$KUBECONFIG" --service-account-private-key-file="$pki/server.key" \
    --root-ca-file="$pki/authority.crt" --use-service-account-credentials --leader-elect=false --bind-address=127.0.0.1 \
    --horizontal-pod-autoscaler-sync-period=2s
  run scheduler kube-scheduler --kubeconfig="$KUBECONFIG" --leader-elect=false --bind-address=127.0.0.1
}

# Settings of containerd: no process may protect itself from the kernel's memory limit, as in a container.
start_containerd() {
  cat >"$directory/containerd.toml" <<END
version = 2
root = "$directory/containerd"
state = "$directory/run"
[grpc]
  address = "$socket"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$directory/cni"
END
  cat >"$directory/cni/10-pods.conflist" <<END
{ "cniVersion": "1.0.0", "name": "pods", "plugins": [{ "type": "ptp", "ipam": { "type": "host-local",
  "dataDir": "$directory/addresses", "ranges": [[{ "subnet": "$pods" }]], "routes": [{ "dst": "0.0.0.0/0" }] } }] }
END
  run containerd containerd --config "$directory/containerd.toml"
  wait_for images version
}

import_images() {
  # shellcheck disable=SC2086
  podman save --multi-image-archive --format docker-archive $PAUSE_IMAGE $IMAGES | images images import - >"$directory/log/import.log"
}

start_node() {
  cat >"$directory/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: { x509: { clientCAFile: $directory/pki/authority.crt } }
containerRuntimeEndpoint: unix://$socket
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
clusterDNS: [$address]
clusterDomain: cluster.local
resolvConf: $directory/resolv.conf
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: { memory.available: 200Mi, nodefs.available: 1%, imagefs.available: 1% }
END
  run kubelet kubelet --config="$directory/kubelet.yaml" --kubeconfig="$KUBECONFIG" --hostname-override=node --node-ip=$address
  cat >"$directory/proxy.yaml" <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: { kubeconfig: $KUBECONFIG }
mode: nftables
clusterCIDR: $pods
hostnameOverride: node
conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s }
END
  run proxy kube-proxy --config="$directory/proxy.yaml"
  cat >"$directory/Corefile" <<END
.:53 {
  bind $address
  errors
  cache 5
  kubernetes cluster.local {
    kubeconfig $KUBECONFIG
    ttl 5
  }
}
END
  run dns coredns -conf "$directory/Corefile"
  wait_for inside kubectl wait --for=condition=Ready node/node --timeout=1s
}

# The API server reads metrics of KEDA at an address of the node, because there is no pod.
start_keda() {
  local pki=$directory/pki
  export WATCH_NAMESPACE= KEDA_CLUSTER_OBJECT_NAMESPACE=kube-system
  # The limit of annotations is below the size of the CRDs.
  inside kubectl apply --server-side --filename "$KEDA_CRDS" >"$directory/log/crds.log"
  wait_for inside kubectl wait --for=condition=Established --filename "$KEDA_CRDS" --timeout=1s
  run keda keda-operator --cert-dir="$pki/keda"
  run metrics keda-metrics-apiserver --secure-port=6444 --port=8088 --metrics-service-address=$address:9666 --cert-dir="$pki/keda" \
    --tls-cert-file="$pki/keda/tls.crt" --tls-private-key-file="$pki/keda/tls.key" --client-ca-file="$pki/authority.crt" \
    --authentication-kubeconfig="$KUBECONFIG" --authorization-kubeconfig="$KUBECONFIG" --lister-kubeconfig="$KUBECONFIG"
  inside kubectl apply --filename - >>"$directory/log/crds.log" <<END
apiVersion: v1
kind: Service
metadata: { name: keda, namespace: kube-system }
spec: { type: ExternalName, externalName: $address }
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: { name: v1beta1.external.metrics.k8s.io }
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  service: { name: keda, namespace: kube-system, port: 6444 }
  caBundle: $(base64 --wrap 0 "$pki/authority.crt")
END
  wait_for inside kubectl wait --for=condition=Available apiservice/v1beta1.external.metrics.k8s.io --timeout=1s
}

up() {
  mkdir -p "$directory"/{log,pid,pki/keda,cni,kubelet,sysctl,run}
  printf '%s\n' "nameserver $address" 'search cluster.local' 'options ndots:5' >"$directory/resolv.conf"
  make_namespaces
  export KUBECONFIG=$directory/pki/admin.conf
  start_containerd
  import_images &
  local importing=$!
  (make_certificates)
  start_control_plane
  wait "$importing"
  start_node
  start_keda
}

end() {
  local pid
  pid=$(cat "$directory/pid/$1" 2>/dev/null) || return 0
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$pid" 2>/dev/null || true
  rm "$directory/pid/$1"
}

# The kubelet ends first, because it would start containers again.
down() {
  for name in metrics keda dns proxy kubelet scheduler controllers; do end $name; done
  if [ -S "$socket" ]; then
    for task in $(images tasks list -q); do images tasks kill --signal SIGKILL --all "$task" || true; done
    for task in $(images tasks list -q); do images tasks delete --force "$task" || true; done
    for container in $(images containers list -q); do images containers delete "$container" || true; done
  fi >/dev/null 2>&1
  for name in apiserver etcd containerd; do end $name; done
  for group in /sys/fs/cgroup/{,*/}kubepods; do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  end holder
  rm -rf "$directory"/{etcd,addresses,kubelet,run,log,pki}
}

"$command"
