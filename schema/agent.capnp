# Coordinator and agent. The agent connects and registers; both directions then call over the one connection.
#
# Refusals that are meant are data (unions), not exceptions: an exception is a bug or a lost connection. Everything crosses
# in lists of what arrived meanwhile, at most 512 entries each, at most a few lists in flight.
@0xd1e7a9c84b6f3202;
using Cxx = import "/capnp/c++.capnp";
using T = import "types.capnp";
$Cxx.namespace("muster::wire");

const protocolVersion :UInt32 = 2;

# What an agent is, at registration.
struct Hello {
  protocol @0 :UInt32;
  node @1 :Text;               # node name, a DNS subdomain
  workDirId @2 :Text;          # made with the work-dir, tied to its inode
  bootId @3 :Text;
  clusterId @4 :Text;          # of the coordinator it served before; empty: none
  highestEpoch @5 :UInt64;     # that it was ever told
  highestCommit @6 :UInt64;
  slots @7 :UInt32;            # pods at a time
  cpuMillis @8 :UInt64;
  memoryBytes @9 :UInt64;
  labels @10 :List(T.Pair);
  running @11 :List(T.PodId);  # started, not ended
  waiting @12 :List(T.PodId);  # accepted, not started
  ended @13 :List(T.PodId);    # ended, not acked
  pid @14 :UInt32;             # of the agent
  address @15 :Text;           # for people
  epochNonce @16 :UInt64;      # beside highestEpoch: two coordinators on copies of one data-dir differ in it
  resources @17 :List(T.Count); # named ones (nvidia.com/gpu) and how many
  secret @18 :Text;            # of the work-dir, 256 bits in hex: what proves that this is its agent
  clusterKey @19 :Text;        # as Welcome gave it: what proves that it served this cluster
  enforcesMemory @20 :Bool;    # resources.limits of containers
  enforcesCpu @21 :Bool;
  noLimits @22 :Text;          # why one of the two is not enforced
}

struct Welcome {
  clusterId @0 :Text;
  epoch @1 :UInt64;
  nonce @2 :UInt64;
  nodeId @3 :UInt32;           # this incarnation
  end @4 :List(T.PodId);       # end these before anything else: they are not open for this node
  heartbeatMs @5 :UInt64;      # send one this often
  leaseMs @6 :UInt64;          # start nothing later than this after sending the last answered heartbeat
  commit @7 :UInt64;           # highest durable commit number
  clusterKey @8 :Text;         # 256 bits in hex; to be kept and presented at each registration
}

struct Refusal {
  enum Why { nameTaken @0; otherCluster @1; protocol @2; invalid @3; notServing @4; }
  why @0 :Why;
  message @1 :Text;
  end @2 :List(T.PodId);       # also a refused agent is told what to end
}

interface Coordinator {
  # The agent's bootstrap. Returns when every job is folded and each open attempt of this node is decided.
  register @0 (hello :Hello, agent :Agent) -> (result :Registered);
}

struct Registered {
  union {
    welcome :group { welcome @0 :Welcome; session @1 :Session; }
    refused @2 :Refusal;
  }
}

# Told when a pod has started, and again whenever any of this changes.
struct PodStart {
  pod @0 :T.PodId;
  pid @1 :UInt32;              # of the first container's newest process
  ageMs @2 :UInt64;
  restarts @3 :UInt32;         # restarts in place so far, all containers
  readiness @4 :T.Readiness;
}

struct PodEnd {
  pod @0 :T.PodId;
  cause @1 :T.EndCause;
  exitCode @2 :Int32;          # of the first container that failed, else 0
  signal @3 :Int32;            # that ended it, else 0
  message @4 :Text;
  startAgeMs @5 :UInt64;       # since it started; meaningless when pid is 0
  endAgeMs @6 :UInt64;         # since it ended
  pid @7 :UInt32;              # 0: never started
  restarts @8 :UInt32;
  containers @9 :List(T.ContainerEnd); # init containers first; empty: one container, which ended as the pod did
}

# What keeps a node from its work, as its condition Ready says it; no reason: nothing does.
struct NodeTrouble {
  reason @0 :Text;             # one word (KeeperNotResponding)
  message @1 :Text;
}

interface Session {
  # Valid until the agent registers again; then every call on it fails.
  heartbeat @0 (trouble :NodeTrouble) -> (epoch :UInt64, nonce :UInt64, commit :UInt64);
  # Renews the lease. DISCONNECTED: register again.

  report @1 (starts :List(PodStart), ends :List(PodEnd)) -> (commit :UInt64, kept :List(T.PodId));
  # Returns once each end is on disk, and waits for nothing else; the return is the ack. Not of the ends of `kept`,
  # whose jobs can't be read just now: an agent keeps these, and reports them again after its next registration.
  # An agent repeats what it has
  # not seen return, so an end may arrive twice and is judged once. DISCONNECTED: register, then report again.

  leave @2 () -> ();
  # The agent drains (SIGTERM): no new pods for this node.
}

struct Launch {
  pod @0 :T.PodId;
  generation @1 :Int64;        # of the template
}

struct Kill {
  pod @0 :T.PodId;
  graceMs @1 :Int64;           # SIGTERM, this long, SIGKILL; 0: SIGKILL at once
}

interface Agent {
  launch @0 (epoch :UInt64, nonce :UInt64, templates :List(T.PodTemplate), pods :List(Launch)) -> ();
  # Idempotent by pod id: what runs, waits or ended already is not started again. Returns when accepted, not started.

  kill @1 (epoch :UInt64, nonce :UInt64, kills :List(Kill)) -> ();
  # The answer is an end in a report, also for a pod that waits (neverStarted). Unknown pods are reported as neverStarted too.

  readLog @2 (pod :T.PodId, container :Text, stream :LogStream, offset :Int64, limit :UInt32, template :LogName) -> (found :Bool, data :Data, offset :Int64, size :UInt64, running :Bool);
  # At most `limit` bytes (at most 1 MiB) from `offset`; a negative offset counts from the end in lines (-10: the last
  # ten lines). The returned offset is where `data` begins. `running` false: no more will come.

  unacked @3 (job :UInt64) -> (ended :List(T.PodId));
  # Of this job: what has ended here and was not acknowledged. Asked before the job decides what would count these pods as
  # killed.
}

enum LogStream { stdout @0; stderr @1; }

# How the log files of a pod are named, also when its template is long forgotten.
struct LogName {
  jobUid @0 :Text;
  podName @1 :Text;
}
