# A container that exceeds its memory limit is killed, and nothing else is, whichever cgroup the agent was started in. A CPU
# limit throttles, and niceness is the cgroup's weight. Processes that a pod leaves behind are killed with its cgroup, even if
# they shed their session and environment.
modules
cgroups=/sys/fs/cgroup

{ job_head NAME; cat <<'Y'; } > /tmp/over.yaml
        command: ["sh", "-c", "tail /dev/zero"]
        resources: {limits: {memory: 64Mi}}
Y
cat > /tmp/more.yaml <<'Y'
apiVersion: batch/v1
kind: Job
metadata: {name: more-NAME, annotations: {muster.dev/retry-memory: "256Mi"}}
spec:
  completionMode: Indexed
  completions: 1
  backoffLimitPerIndex: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        command: ["sh", "-c", "head -c 100000000 /dev/zero | tail"]
        resources: {limits: {memory: 64Mi}}
Y
{ job_head 'within-NAME, annotations: {muster.dev/nice: "5"}'; cat <<'Y'; } > /tmp/within.yaml
        command: ["sh", "-c"]
        args:
        - |
          own=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)
          echo "cpu.max $(cat $own/cpu.max)"
          echo "memory.max $(cat $own/memory.max)"
          echo "cpu.weight.nice $(cat $own/cpu.weight.nice) of $(cut -d' ' -f19 /proc/self/stat)"
          i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done
          grep nr_throttled $own/cpu.stat
          env -i setsid sleep 4711 &
        resources: {limits: {memory: 32Mi, cpu: 200m}}
Y

agent_in() {  # agent_in CGROUP NAME [USER]: starts an agent there; its shell moves in and execs it
  run="exec muster agent --coordinator 127.0.0.1:7118 --name $2 --slots 2 --work-dir /tmp/$2"
  [ -z "$3" ] || run="exec su $3 -c '$run'"
  sh -c "echo \$\$ > $1/cgroup.procs && $run" >/tmp/$2.log 2>&1 &
  agent_pid=$!
  eventually node_is "$2" 'reason: AgentReady'
}

node_enforces() {
  node_is "$1" 'reason: CgroupControllersAvailable'
}

submit() {  # submit TEMPLATE NAME
  sed "s/NAME/$2/" "/tmp/$1.yaml" > "/tmp/$1-$2.yaml"
  muster create -f "/tmp/$1-$2.yaml" >/dev/null
}

placement() {  # placement NAME CGROUP [USER]
  agent_in "$2" "$1" "$3"
  check "p18_condition_$1" node_enforces "$1"
  submit over "$1"
  muster wait "job/$1" --for=condition=Failed --timeout 120s >/dev/null 2>&1
  muster get pods -o yaml -l job-name=$1 > /tmp/$1.pods
  check "p18_memory_limit_$1" grep -q 'reason: OOMKilled' /tmp/$1.pods || show /tmp/$1.log
  submit more "$1"
  muster wait "job/more-$1" --timeout 120s >/dev/null 2>&1
  muster get attempts "job/more-$1" > /tmp/$1.more
  check "p18_more_memory_$1" grep -q 'success' /tmp/$1.more || show /tmp/$1.more /tmp/$1.log
  check "p18_killed_before_$1" grep -q '64Mi.*OOMKilled' /tmp/$1.more || show /tmp/$1.more
  submit within "$1"
  muster wait "job/within-$1" --timeout 120s >/dev/null 2>&1
  muster logs "job/within-$1" > /tmp/$1.out
  check "p18_limits_of_the_pod_$1" grep -q 'memory.max 33554432' /tmp/$1.out || show /tmp/$1.out /tmp/$1.log
  check "p18_cpu_limit_$1" grep -q 'cpu.max 20000 100000' /tmp/$1.out || show /tmp/$1.out
  check "niceness_is_the_cgroups_weight_$1" grep -q 'cpu.weight.nice 5 of 5' /tmp/$1.out || show /tmp/$1.out
  check "p18_throttled_$1" grep -q 'nr_throttled [1-9]' /tmp/$1.out || show /tmp/$1.out
  check "p18_nothing_left_$1" nothing_left
  kill "$agent_pid"
  wait "$agent_pid"
}

nothing_left() {
  ! grep -qs '[4]711' /proc/[0-9]*/cmdline  # busybox has no pgrep here
}

coordinator /tmp/c
mkdir $cgroups/own $cgroups/outer $cgroups/outer/sub
placement beside $cgroups/init
placement own $cgroups/own
placement sub $cgroups/outer/sub
kill "$coordinator_pid"
wait "$coordinator_pid"

# As another user, with a cgroup delegated to it as the kernel's documentation describes.
mkdir $cgroups/given
chown alice $cgroups/given $cgroups/given/cgroup.procs $cgroups/given/cgroup.subtree_control
mkdir /tmp/alice
chown alice /tmp/alice
export MUSTER_COORDINATOR_USER=alice  # who is neither root nor, for root's commands, themselves
su alice -c 'exec muster coordinator --data-dir /tmp/alice/c --require-limits' >/tmp/alice.log 2>&1 &
coordinator_pid=$!
eventually test -s /tmp/alice/c/endpoints.json || show /tmp/alice.log
placement given $cgroups/given alice
