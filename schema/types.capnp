# Values shared by the schemas. Times on the wire are ages ("this many milliseconds ago"), so clocks are never compared
# across machines. Only add fields; an old reader ignores those it does not know.
@0xb6a3f0a1d25c4e01;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("muster::wire");

struct PodId {
  job @0 :UInt64;
  index @1 :UInt32;
  attempt @2 :UInt32;
}

# Why a pod ended. The journal stores these numbers, so only add enumerants at the end.
enum EndCause {
  exited @0;                   # all processes exited, or someone other than muster killed them
  killed @1;                   # ended after the coordinator ordered a kill
  neverStarted @2;             # killed before it started
  startFailed @3;              # exit code 126 or 127, see message
  keeperLost @4;               # the exit code is unknown: 137, DisruptionTarget/TerminationByKubelet
  agentStopped @5;             # the agent drained: DisruptionTarget/TerminationByKubelet
  fenced @6;                   # ended at registration because it was not open on that node, or because of muster.dev/fence-after
  deadline @7;                 # activeDeadlineSeconds of the pod
  outOfMemory @8;              # OOMKilled
  nodeLost @9;                 # the coordinator declared its node lost: DisruptionTarget/DeletionByTaintManager
  nodeDeleted @10;             # its Node object was deleted: DisruptionTarget/DeletionByPodGC
  evicted @11;                 # the node was short of memory: DisruptionTarget/TerminationByKubelet
  returned @12;               # given up by its node before it started; counts nowhere and is replaced
  workerUnreachable @13;       # an MPI leader whose worker cannot be reached: DisruptionTarget/WorkerUnreachable, see message
}

enum Readiness {
  ready @0;                    # every container is running
  initializing @1;             # init containers are running
  notReady @2;                 # a container has ended or waits to be restarted
}

# How the newest instance of one container ended. `started` and `ended` are encoded like the times of the struct that
# holds this: 0 means absent (a container without a start never ran), any other value is a coded instant in the journal
# and 1 + an age on the wire.
struct ContainerEnd {
  cause @0 :EndCause;
  exitCode @1 :Int32;
  signal @2 :Int32;
  restarts @3 :Int32;
  started @4 :UInt64;
  ended @5 :UInt64;
}

enum ContainerPhase {
  unborn @0;                   # it has not run yet
  waiting @1;                  # to be restarted
  running @2;
  ended @3;                    # for good
}

# One container of a pod that runs. `since` is encoded like the times of a ContainerEnd.
struct ContainerNow {
  phase @0 :ContainerPhase;
  since @1 :UInt64;            # running: when its process started
  restarts @2 :Int32;
  last @3 :ContainerEnd;       # how its newest process that has ended did; absent: none has
}

# How a process of a container ended that was restarted in place since. `restarts` of `end` is its number, counted from 0.
struct RunEnd {
  container @0 :UInt16;        # init containers first
  end @1 :ContainerEnd;
  used @2 :Usage;              # absent: not known
}

# What the processes of a pod have used.
struct Usage {
  userUs @0 :UInt64;           # CPU time, in microseconds
  systemUs @1 :UInt64;
  peakBytes @2 :UInt64;        # largest memory; 0: not known
}

struct EnvVar {
  name @0 :Text;
  value @1 :Text;
  fieldPath @2 :Text;       # valueFrom.fieldRef; empty: `value` is used
  secretName @3 :Text;      # valueFrom.secretKeyRef; empty: none. If set, fieldPath is "secretKeyRef",
  secretKey @4 :Text;       # so that an agent that does not support secrets refuses the pod
  secretOptional @5 :Bool;
  configName @6 :Text;      # valueFrom.configMapKeyRef; empty: none. If set, fieldPath is "configMapKeyRef",
  configKey @7 :Text;       # so that an agent that does not support config maps refuses the pod
  configOptional @8 :Bool;
}

struct Container {
  name @0 :Text;
  command @1 :List(Text);
  args @2 :List(Text);
  workingDir @3 :Text;
  env @4 :List(EnvVar);
  memoryLimitBytes @5 :UInt64; # resources.limits; 0: none
  cpuLimitMillis @6 :UInt64;
  resources @7 :List(Count);   # named resources that it requests
  volumeMounts @8 :List(VolumeMount);
  envFrom @9 :List(EnvSource); # if any, there is a variable MUSTER_ENV_FROM with the fieldPath "envFrom", so that
                               # an agent that does not support config maps refuses the pod
  runAsUser @10 :Int64 = -1;   # core/node/confinement.hpp; -1: absent. If a job without an owner has any of these, its first
  runAsGroup @11 :Int64 = -1;  # container has a variable MUSTER_SECURITY_CONTEXT with the fieldPath "securityContext", so that an
  runAsNonRoot @12 :Bool;      # agent that does not support them refuses the pod
  noNewPrivileges @13 :Bool;
  dropCapabilities @14 :UInt64;
  cpus @15 :UInt32;            # whole CPUs that it requests, for nodes that bind it to CPUs of its own; 0: none
}

struct VolumeMount {
  name @0 :Text;               # of the volume
  mountPath @1 :Text;
  subPath @2 :Text;
  readOnly @3 :Bool;
}

struct VolumeItem {
  key @0 :Text;
  path @1 :Text;
  mode @2 :Int32 = -1;         # -1: absent
}

# core/spec/values/volumes.hpp
struct Volume {
  name @0 :Text;
  kind @1 :UInt8;              # VolumeKind
  medium @2 :Text;
  sizeLimit @3 :Text;
  path @4 :Text;
  type @5 :Text;
  secret @6 :Text;
  items @7 :List(VolumeItem);
  defaultMode @8 :Int32 = -1;  # -1: absent
  optional @9 :Bool;
  configMap @10 :Text;
}

struct EnvSource {
  prefix @0 :Text;
  configMap @1 :Text;
  optional @2 :Bool;
}

struct ConfigEntry {
  key @0 :Text;
  value @1 :Data;
  binary @2 :Bool;
}

struct ConfigMap {
  name @0 :Text;
  entries @1 :List(ConfigEntry);
}

struct Count {
  name @0 :Text;
  count @1 :UInt64;
}

struct Pair {
  key @0 :Text;
  value @1 :Text;
}

# Everything that a job's pods share. Sent to an agent once per job, generation and connection.
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
  ownerUid @16 :UInt32;        # the user that the job belongs to, if `owned`
  owned @17 :Bool;
  permit @18 :Data;            # trust/permit/permit.hpp; empty: not owned
  signature @19 :Data;         # of the permit
  mpi @20 :Text;               # muster.dev/mpi
  fenceAfterMs @21 :Int64;     # muster.dev/fence-after; 0: none
  inputs @22 :Data;            # muster.dev/inputs
  inputsFile @23 :Text;        # muster.dev/inputs-file. With either, the first container has a variable MUSTER_INPUT with the
                               # fieldPath "muster.dev/inputs", so that an agent that does not support inputs refuses the pod
  volumes @24 :List(Volume);   # with these or privateTmp, there is a variable MUSTER_SCRATCH with the fieldPath
                               # "muster.dev/volumes", for the same reason
  privateTmp @25 :Bool;        # muster.dev/private-tmp
  configs @26 :List(ConfigMap); # the existing config maps that the containers use; only in answers to Session.configs and in
                               # Agent.exec
  bytes @27 :Data;             # core/node/template_codec.hpp, for agents that take them (Hello.takesTemplates). Of the fields
                               # above, only permit and signature are then set: the signature is that of permit and bytes
}
