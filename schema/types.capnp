# Values that more than one schema uses. Times on the wire are ages ("this many milliseconds ago"): no clock is compared
# across machines. Fields are only ever added; an old reader ignores what it does not know.
@0xb6a3f0a1d25c4e01;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("muster::wire");

struct PodId {
  job @0 :UInt64;
  index @1 :UInt32;
  attempt @2 :UInt32;
}

# Why a pod's processes are no more. The journal keeps these numbers, so an enumerant is only ever added at the end.
enum EndCause {
  exited @0;                   # all processes ended by themselves, or were killed behind our back
  killed @1;                   # ended after a kill that was ordered
  neverStarted @2;             # killed while it waited
  startFailed @3;              # exit code 126 or 127, see message
  keeperLost @4;               # the exit code is unknown: 137, DisruptionTarget/TerminationByKubelet
  agentStopped @5;             # the agent drained: DisruptionTarget/TerminationByKubelet
  fenced @6;                   # ended because the coordinator said at registration that it is not open here
  deadline @7;                 # activeDeadlineSeconds of the pod
  outOfMemory @8;              # OOMKilled
  nodeLost @9;                 # the coordinator's word: DisruptionTarget/DeletionByTaintManager
  nodeDeleted @10;             # the coordinator's word: DisruptionTarget/DeletionByPodGC
  evicted @11;                 # the node was short of memory: DisruptionTarget/TerminationByKubelet
  returned @12;               # it waited for a slot for long and never ran; counts nowhere, another takes its place
}

enum Readiness {
  ready @0;                    # every container runs
  initializing @1;             # init containers run
  notReady @2;                 # a container has ended, or waits to be started again
}

# How one container ended, its newest instance. The two times are coded as those of what holds it: 0 is "absent", of the
# start that it never ran; else in the journal a coded instant, on the wire 1 + an age.
struct ContainerEnd {
  cause @0 :EndCause;
  exitCode @1 :Int32;
  signal @2 :Int32;
  restarts @3 :Int32;
  started @4 :UInt64;
  ended @5 :UInt64;
}

struct EnvVar {
  name @0 :Text;
  value @1 :Text;
  fieldPath @2 :Text;  # valueFrom.fieldRef; empty when value is meant
}

struct Container {
  name @0 :Text;
  command @1 :List(Text);
  args @2 :List(Text);
  workingDir @3 :Text;
  env @4 :List(EnvVar);
  memoryLimitBytes @5 :UInt64; # resources.limits; 0: none
  cpuLimitMillis @6 :UInt64;
  resources @7 :List(Count);   # named ones that it requests
}

struct Count {
  name @0 :Text;
  count @1 :UInt64;
}

struct Pair {
  key @0 :Text;
  value @1 :Text;
}

# All that the pods of a job have in common. Sent to an agent once per job, generation and connection.
struct PodTemplate {
  job @0 :UInt64;
  generation @1 :Int64;
  jobName @2 :Text;
  jobUid @3 :Text;
  namespace @4 :Text;
  indexed @5 :Bool;
  completions @6 :Int32;       # -1: absent
  parallelism @7 :Int32;
  graceMs @8 :Int64;           # terminationGracePeriodSeconds
  restartPolicy @9 :Text;
  initContainers @10 :List(Container);
  containers @11 :List(Container);
  restartDelayMs @12 :Int64;   # muster.dev/restart-delay
  activeDeadlineMs @13 :Int64; # of the pod; 0: none
  labels @14 :List(Pair);
  annotations @15 :List(Pair);
}
