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
  fenceAfterMs @16 :Int64;     # reserved: kill by oneself when the lease is stale this long; 0: never
}
