# The values of the journal's rows, in packed encoding. docs/formats.md has the keys and the rules.
#
# Each value begins with the version of its format; an unknown version is refused, never guessed. Within a version, only
# add fields and union members. Instants marked "coded" are UInt64: 0 means absent, any other value is
# 1 + zigzag(instant - base) in milliseconds, which packs to a byte or two near the base.
@0xe4f19b7c20d85a03;
using Cxx = import "/capnp/c++.capnp";
using T = import "types.capnp";
$Cxx.namespace("muster::wire");

const journalFormat :UInt32 = 1;      # of the whole journal: its keys and kinds of rows
const recordsVersion :UInt32 = 1;
const snapshotVersion :UInt32 = 1;
const nodeVersion :UInt32 = 1;
const keptVersion :UInt32 = 1;
const tokenVersion :UInt32 = 1;
const claimsVersion :UInt32 = 1;
const attemptsVersion :UInt32 = 1;
const summaryVersion :UInt32 = 1;
const historyVersion :UInt32 = 1;

enum Counted { notYet @0; succeeded @1; failed @2; ignored @3; released @4; cancelled @5; }

# How a job that others depend on must end, and how it ended (core/job/facts/dependency.hpp).
enum Needed { ok @0; notok @1; any @2; each @3; }
enum DependencyEnd { succeeded @0; failed @1; deleted @2; waived @3; }

enum FailureAction { none @0; count @1; ignore @2; failIndex @3; failJob @4; }
# One append for one job.
struct RecordList {
  version @0 :UInt32;
  records @1 :List(Record);
}

struct Record {
  atMs @0 :Int64;
  union {
    jobAdmitted :group {              # the object is in the owner's row; these are its values at that time
      generation @1 :Int64;
      parallelism @2 :Int32;
      completions @3 :Int32;         # -1: absent
      after @38 :List(Dependency);    # the job is held until these have ended
    }
    jobSpecChanged :group {           # the owner's row is rewritten in the same batch
      generation @4 :Int64;
      parallelism @5 :Int32;
      completions @6 :Int32;          # -1: absent
    }
    jobStarted @7 :Void;
    podsCreated @8 :List(CreatedRun);
    podsBound @9 :List(BoundRun);
    podsStarted @10 :List(Start);
    podsEnded :group {
      ends @11 :List(End);
      backoffFailures @12 :UInt32;
      backoffLast @13 :UInt64;        # coded, base atMs
    }
    podsStopping :group {
      runs @14 :List(StoppingRun);
      byOthers @21 :Bool;             # deleted by someone other than the job itself
      backoffFailures @22 :UInt32;
      backoffLast @23 :UInt64;        # coded, base atMs
    }
    finishDecided :group {
      success @15 :Bool;
      reason @16 :Text;
      message @17 :Text;
    }
    jobFinished @18 :Void;
    jobDeleted :group {
      background @19 :Bool;
      orphan @24 :Bool;
      waits @31 :Bool;                # the job has a finalizer: its pods keep running until that is removed
    }
    jobForgotten @20 :Void;
    podConditionSet :group {
      index @25 :UInt32;
      attempt @26 :UInt32;
      condition @27 :PodCondition;
    }
    podsRemoved @28 :List(StoppingRun); # only first, count and attempt are set
    jobSuspended @29 :Bool;
    statusWritten @30 :Text;
    indexLimitsSet @32 :Bool;
    conditionsWritten @33 :Text;
    podMetaSet :group {
      index @34 :UInt32;
      attempt @35 :UInt32;
      changes @36 :List(PodMetaChange);
    }
    gangBroken @37 :GangBreak;
    dependencyEnded :group {
      job @39 :UInt64;
      how @40 :DependencyEnd;
    }
    dependencyAdvanced :group {       # since the last such record
      job @41 :UInt64;
      passed @42 :List(UInt32);       # intervals, see docs/formats.md
      failed @43 :List(UInt32);       # intervals
    }
    indexesFailed @44 :List(UInt32);  # intervals
    jobHeld @45 :Hold;                # its `at` is not set: it is atMs
    jobReleased @46 :Text;            # by whom
    prioritySet @47 :Priority;        # likewise
    jobCancelled @48 :Text;           # by whom
    indexesCancelled @49 :Cancelled;  # its `at` is not set
  }
}

# Who keeps a job from starting pods.
struct Hold {
  by @0 :Text;
  byOperator @1 :Bool;
  reason @2 :Text;
  at @3 :UInt64;                      # coded, base lastRecordMs
}

# The priority that replaces the one of a job's template.
struct Priority {
  by @0 :Text;
  set @1 :Bool;                       # false: the template's again
  value @2 :Int32;
  at @3 :UInt64;                      # coded, base lastRecordMs
  queue @4 :Text;                     # absent: the object's
  timeLimit @5 :Int64 = -1;           # seconds, 0: none; negative: the template's
}

# Who cancelled indexes.
struct Cancelled {
  by @0 :Text;
  indexes @1 :List(UInt32);           # intervals; absent: the whole job
  at @2 :UInt64;                      # coded, base lastRecordMs
}

# A node that could not start the job's pods.
struct StartTrouble {
  node @0 :UInt32;
  at @1 :UInt64;                      # coded, base lastRecordMs
  why @2 :Text;
}

# The text of an event.
struct Note {
  number @0 :UInt64;
  text @1 :Text;
}

# A job that must end before this one starts.
struct Dependency {
  job @0 :UInt64;
  name @1 :Text;
  needed @2 :Needed;
}

# Runs: `count` pods with consecutive indexes; their other fields are equal.
struct CreatedRun {
  first @0 :UInt32;
  count @1 :UInt32;
  attempt @2 :UInt32;
  failures @3 :Int32;
  ignored @4 :Int32;
  deferredCounted @5 :Counted;
  disruptions @6 :Int32;              # part of ignored
}

struct BoundRun {
  first @0 :UInt32;
  count @1 :UInt32;
  attempt @2 :UInt32;
  node @3 :UInt32;
}

struct StoppingRun {
  first @0 :UInt32;
  count @1 :UInt32;
  attempt @2 :UInt32;
  counted @3 :Counted;
  failsIndex @4 :Bool;
  grace @5 :UInt64;                   # milliseconds plus 1; 0: the template's
}

# `at` is coded; its base is the record's instant or the pod's creation.
struct PodCondition {
  type @0 :Text;
  status @1 :Text;
  at @2 :UInt64;
  reason @3 :Text;
  message @4 :Text;
}

# A label or annotation of a pod that differs from its template.
struct PodMetaChange {
  label @0 :Bool;                     # else an annotation
  key @1 :Text;
  value @2 :Text;
  removed @3 :Bool;                   # the key was removed
}

# How a gang broke (core/job/facts/record.hpp).
struct GangBreak {
  index @0 :UInt32;                   # of the pod that failed
  attempt @1 :UInt32;
  whole @2 :Bool;
  leaderPays @3 :Bool;
  why @4 :Text;
}

struct Start {
  index @0 :UInt32;
  attempt @1 :UInt32;
  pid @2 :Int32;                      # 0: no process of it has started yet
  restarts @3 :Int32;
  started @4 :UInt64;                 # coded, base atMs
  readiness @5 :T.Readiness;
  containers @6 :List(T.ContainerNow);
  cpus @7 :Text;                      # that it has for itself; empty: none
}

struct End {
  index @0 :UInt32;
  attempt @1 :UInt32;
  exitCode @2 :Int32;
  signal @3 :Int32;
  pid @4 :Int32;                      # 0: it never started
  restarts @5 :Int32;
  ended @6 :UInt64;                   # coded, base atMs
  started @7 :UInt64;                 # coded, base atMs
  cause @8 :T.EndCause;
  counted @9 :Counted;
  failsIndex @10 :Bool;
  message @11 :Text;
  action @12 :FailureAction;
  containers @13 :List(T.ContainerEnd);
  used @14 :T.Usage;                  # absent: not known
  runs @15 :List(T.RunEnd);           # as reported with the end
  memoryStep @16 :UInt8;              # with timeStep: what the next pods of its index have; both 0: no change
  timeStep @17 :UInt8;
}

# The state of one job after its appends up to and including `sequence`. Instants are coded with base lastRecordMs.
struct JobSnapshot {
  version @0 :UInt32;
  sequence @1 :UInt64;
  generation @2 :Int64;
  parallelism @3 :Int32;
  completions @4 :Int32;
  lastRecordMs @5 :Int64;
  admitted @6 :UInt64;
  start @7 :UInt64;
  completion @8 :UInt64;
  deleted @9 :UInt64;
  backgroundDeleted @10 :Bool;
  forgotten @11 :Bool;
  synced @12 :Bool;
  conditions @13 :List(Condition);
  completed @14 :List(UInt32);        # intervals, see docs/formats.md
  failedIndexes @15 :List(UInt32);    # intervals
  succeeded @16 :UInt64;
  failed @17 :UInt64;
  backoffFailures @18 :UInt32;
  backoffLast @19 :UInt64;
  attemptFloor @20 :UInt32;
  attemptMax @21 :UInt32;
  nextNumber @22 :UInt32;
  attempts @23 :List(AttemptRun);
  open @24 :List(Pod);
  deferred @25 :List(Pod);
  finished @26 :List(Pod);            # oldest first
  events @27 :List(Event);            # oldest first
  eventsTotal @28 :UInt64;
  podsCreated @29 :UInt64;
  orphaned @30 :Bool;
  externalStatus @31 :Text;
  deletionWaits @32 :Bool;
  indexLimitsOff @33 :Bool;
  ownConditions @34 :Text;
  broken @35 :GangBreak;              # absent: the gang is not broken
  inherited @36 :List(FailureCounts);
  dependencies @37 :List(Dependency); # those that have not ended
  used @38 :T.Usage;                  # by all attempts; absent: not known
  ranMs @39 :Int64;                   # run times of all attempts
  followed @40 :List(Followed);
  hold @41 :Hold;                     # absent: it is not on hold
  priority @42 :Priority;             # absent: the template's
  notes @43 :List(Note);
  cancelled @44 :Cancelled;           # absent: it is not
  cancelledIndexes @45 :List(UInt32); # intervals
  cancellations @46 :List(Cancelled);
  startTrouble @47 :List(StartTrouble);
  attemptsEnded @48 :UInt64;          # that were on a node, other than those it returned
  firstStart @49 :UInt64;             # of any process; coded, base lastRecordMs
  waitedMs @50 :Int64;                # until then
  ranInQueue @51 :Text;               # that an operator had moved the job to; absent: its own
  steps @52 :List(StepsRun);
  ownerHold @53 :Hold;                # absent: none is below an operator's
}

# Consecutive indexes, none of them completed, whose next pods have these steps.
struct StepsRun {
  first @0 :UInt32;
  count @1 :UInt32;
  memory @2 :UInt8;
  time @3 :UInt8;
}

# A job that this one follows index by index, and what is known of it.
struct Followed {
  job @0 :UInt64;
  name @1 :Text;
  passed @2 :List(UInt32);            # intervals
  failed @3 :List(UInt32);            # intervals
  ended @4 :Bool;
}

# What the next pod of an index inherits in a gang.
struct FailureCounts {
  index @0 :UInt32;
  failures @1 :Int32;
  ignored @2 :Int32;
  failed @3 :UInt64;                  # coded, base lastRecordMs; instant 0: no failure delays it
  disruptions @4 :Int32;              # part of ignored
}

struct Condition {
  type @0 :Text;
  status @1 :Bool;
  at @2 :UInt64;
  reason @3 :Text;
  message @4 :Text;
}

struct AttemptRun {
  gap @0 :UInt32;                     # from the end of the previous run (or from 0)
  count @1 :UInt32;
  next @2 :UInt32;                    # next attempt of each of these indexes
}

# Instants are coded: `created` with the base of the struct that holds the pod, the others with base `created`.
struct Pod {
  index @0 :UInt32;
  attempt @1 :UInt32;
  created @2 :UInt64;
  node @3 :UInt32;
  bound @4 :UInt64;
  started @5 :UInt64;
  pid @6 :Int32;                      # 0: no process of it has started yet
  restarts @7 :Int32;
  failures @8 :Int32;
  ignored @9 :Int32;
  stopping @10 :UInt64;
  counted @11 :Counted;
  isEnded @12 :Bool;
  cause @13 :T.EndCause;
  exitCode @14 :Int32;
  signal @15 :Int32;
  ended @16 :UInt64;
  message @17 :Text;
  readiness @18 :T.Readiness;
  grace @19 :UInt64;                  # milliseconds plus 1; 0: the template's
  action @20 :FailureAction;
  conditions @21 :List(PodCondition);
  containers @22 :List(T.ContainerEnd);
  meta @23 :List(PodMetaChange);
  spared @24 :Bool;                   # its gang broke
  used @25 :T.Usage;                  # absent: not known
  now @26 :List(T.ContainerNow);      # until it has ended
  disruptions @27 :Int32;             # part of ignored
  runs @28 :List(T.RunEnd);           # those that were followed by another; at most ten
  memoryStep @29 :UInt8;              # 0: as its template says
  timeStep @30 :UInt8;                # likewise
  cpus @31 :Text;                     # that it has, or had, for itself; empty: none
}

# What startup and lists need to know about an unloaded finished job.
struct SummaryRow {
  version @0 :UInt32;
  namespace @1 :Text;
  name @2 :Text;
  uid @3 :Text;
  finishedMs @4 :Int64;
  wakeMs @5 :Int64;                   # when its TTL expires; 0: never
  complete @6 :Bool;                  # else Failed
  namedPods @7 :Bool;                 # its pods carry the job's name and uid as labels
  # What lists show or select by, besides the owner's row.
  generation @8 :Int64;
  createdMs @9 :Int64;
  labels @10 :List(Label);
  someIndexes @11 :Bool;              # it has the annotation muster.dev/indexes
  indexes @12 :Text;
  completionMode @13 :Text;
  perIndex @14 :Bool;                 # backoffLimitPerIndex is set
  hasSelector @15 :Bool;
  selector @16 :List(Label);
  containers @17 :List(Label);        # name and image
  state @18 :Data;                    # a JobSnapshot without pods, events and attempts; empty: omitted as too long
  owners @19 :List(OwnerReference);
  noticeDue @20 :Bool;                # somebody still has to be told of its end
  ownerKnown @21 :Bool;               # else written by a version that left `owner` out
  owner @22 :List(Label);             # the annotations with its name and uid
}

# What is kept of a job that has ended or is deleted. The base of coded instants is createdMs.
struct HistoryRow {
  enum State {
    pending @0;
    held @1;
    suspended @2;
    running @3;
    complete @4;
    failed @5;
    cancelled @6;
    deleted @7;
  }
  enum Removal {
    none @0;
    deleted @1;
    expired @2;
  }
  version @0 :UInt32;
  createdMs @1 :Int64;
  state @2 :State;
  namespace @3 :Text;
  name @4 :Text;
  uid @5 :Text;
  hasOwner @6 :Bool;
  ownerUid @7 :UInt32;
  ownerGid @8 :UInt32;
  user @9 :Text;
  queue @10 :Text;
  command @11 :Text;                  # the beginning of it
  reason @12 :Text;
  message @13 :Text;                  # likewise
  indexed @14 :Bool;
  indexes @15 :UInt64;
  succeeded @16 :UInt64;
  failedIndexes @17 :UInt64;
  cancelledIndexes @18 :UInt64;
  attempts @19 :UInt64;
  failedAttempts @20 :UInt64;
  used @21 :T.Usage;                  # absent: not known
  ranMs @22 :Int64;                   # run times of all attempts
  started @23 :UInt64;                # coded
  waitedMs @24 :Int64;
  ended @25 :UInt64;                  # coded
  removal @26 :Removal;
  removed @27 :UInt64;                # coded
  cpuMillis @28 :Int64;               # that each pod requests
  memoryBytes @29 :Int64;
  named @30 :List(Resource);
  tasks @31 :Text;                    # of an array: its numbers, as ranges
}

# An entry of metadata.ownerReferences.
struct OwnerReference {
  apiVersion @0 :Text;
  kind @1 :Text;
  name @2 :Text;
  uid @3 :Text;
  blocks @4 :Bool;                    # blockOwnerDeletion
  controller @5 :Bool;
}

# The attempts that one append of their job closed. The base of `created` is atMs.
struct AttemptList {
  version @0 :UInt32;
  atMs @1 :Int64;                     # of that append
  pods @2 :List(Pod);
}

struct Event {
  enum Kind {
    successfulCreate @0;
    successfulDelete @1;
    completed @2;
    failed @3;
    suspended @4;
    resumed @5;
    tooManySucceeded @6;
    gangBroken @7;
    held @8;
    released @9;
    prioritySet @10;
    cancelled @11;
  }
  kind @0 :Kind;
  at @1 :UInt64;
  index @2 :UInt32;
  attempt @3 :UInt32;
  number @4 :UInt64;
}

# The durable part of one incarnation of a node.
struct NodeRow {
  version @0 :UInt32;
  id @1 :UInt32;
  name @2 :Text;
  workDirId @3 :Text;
  bootId @4 :Text;
  slots @5 :UInt32;
  cpuMillis @6 :UInt64;
  memoryBytes @7 :UInt64;
  labels @8 :List(Label);
  address @9 :Text;
  createdMs @10 :Int64;
  unschedulable @11 :Bool;
  gone @12 :Bool;
  taints @13 :List(Taint);
  ownLabels @14 :List(Label);         # set by operators
  annotations @15 :List(Label);
  resources @16 :List(Resource);
  deleted @17 :Bool;
  managers @18 :Text;                 # JSON: metadata.managedFields
  secret @19 :Text;                   # of the work-dir; empty: the agent had none
  strangers @20 :List(Stranger);      # pods running there that a restored state does not know
  ip @21 :Text;                       # where other nodes reach it; empty: unknown
  leftMs @22 :Int64;                  # when its agent announced its shutdown; 0: not since it registered
  reasons @23 :List(NodeReason);
}

# Who cordoned or tainted a node, when and why.
struct NodeReason {
  what @0 :Text;                      # "cordon", or a taint as KEY:EFFECT
  by @1 :Text;
  atMs @2 :Int64;
  text @3 :Text;
}

# An object that clients store in muster (core/kept.hpp).
struct KeptRow {
  version @0 :UInt32;
  kind @1 :UInt8;                     # core::KeptKind
  id @2 :UInt64;
  namespace @3 :Text;
  name @4 :Text;
  uid @5 :Text;
  json @6 :Text;
  writtenMs @7 :Int64;
  commit @8 :UInt64;                  # the commit that wrote it; its resourceVersion
  owned @9 :Bool;
  ownerUid @10 :UInt32;               # the user that it belongs to, if `owned`
}

struct TokenRow {
  version @0 :UInt32;
  id @1 :Text;
  ofUser @2 :Bool;                    # else of a node, a coordinator or a pool
  subject @3 :Text;                   # the name of the user, the node, the coordinator or the pool
  uid @4 :UInt32;
  hash @5 :Text;                      # of a user's secret
  by @6 :Text;
  madeMs @7 :Int64;
  untilMs @8 :Int64;
  usedKey @9 :Text;                   # of a node's: hash of the public key that was certified
  claims @10 :NodeClaims;             # of a node's or a pool's; absent: written before tokens had claims
  ofCoordinator @11 :Bool;
  usesMax @12 :UInt32;                # of a pool's; 0: it is not one
  usedKeys @13 :List(Text);           # likewise
}

# What a node's agent may claim (core/cluster/nodes/claims.hpp).
struct NodeClaims {
  labels @0 :List(Text);              # patterns
  slotsMax @1 :UInt32;
  resources @2 :List(Resource);       # the most of each
  pool @3 :Text;                      # with whose token the node joined; empty: with its own
}

struct ClaimsRow {
  version @0 :UInt32;
  claims @1 :NodeClaims;
}

struct Stranger {
  job @0 :UInt64;
  index @1 :UInt32;
  attempt @2 :UInt32;
}

struct Taint {
  key @0 :Text;
  value @1 :Text;
  effect @2 :Text;
}

struct Resource {
  name @0 :Text;
  count @1 :Int64;
}

struct Label {
  key @0 :Text;
  value @1 :Text;
}
