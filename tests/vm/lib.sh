# Helpers shared by all scenarios: checks, modules, the coordinator, manifests.

check() {  # check NAME COMMAND...: passes, and succeeds, if the command succeeds
  name=$1
  shift
  if "$@"; then
    echo "ok $name"
  else
    echo "FAIL $name: $*"
    return 1
  fi
}

eventually() {  # eventually COMMAND...: retries for two minutes
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ "$tries" -lt 240 ] || return 1
    sleep 0.5
  done
}

modules() {
  for module in inet_diag tcp_diag; do insmod "/lib/modules/$module.ko"; done
}

coordinator() {  # coordinator DIR [FLAGS]: on the default ports
  dir=$1
  shift
  muster coordinator --data-dir "$dir" "$@" >"$dir.log" 2>&1 &
  coordinator_pid=$!
  eventually test -s "$dir/endpoints.json" || cat "$dir.log"
}

job_head() {  # job_head NAME: prints a manifest up to the container's fields
  cat <<Y
apiVersion: batch/v1
kind: Job
metadata: {name: $1}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
Y
}

node_is() {  # node_is NODE TEXT: whether the Node object, as YAML, matches TEXT
  muster get nodes "$1" -o yaml | grep -q "$2"
}

show() {  # prints files for a check that failed
  sed 's/^/    /' "$@"
}
