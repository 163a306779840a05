# The protocol between the coordinators of one cluster. A follower connects to the leader's peers port, over mutual TLS, and joins;
# then the leader sends it each batch of the journal. Expected refusals are data; an exception means a bug or a lost
# connection.
@0xb8d1f03c6a527e94;
using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("muster::wire");

const standbyProtocol :UInt32 = 1;
const standbyOldest :UInt32 = 1;  # that is spoken, too (docs/upgrade.md)

# Where a coordinator can be reached (core/standby/configuration.hpp).
struct Place {
  peers @0 :Text;
  api @1 :Text;
  apiTls @2 :Text;
  listen @3 :Text;
  listenTls @4 :Text;
  version @5 :Text;
}

# A follower, and the end of its journal.
struct Replica {
  protocol @0 :UInt32;
  cluster @1 :Text;    # empty: its data-dir is empty
  member @2 :Text;
  epoch @3 :UInt64;    # the last one in its line of epochs
  nonce @4 :UInt64;
  commit @5 :UInt64;   # the last one
  place @6 :Place;
  wallMs @7 :Int64;    # its wall clock, so that clocks that differ are noticed
  process @8 :Text;    # its data-dir on its machine (standby/own_dir.hpp)
  seats @9 :List(Text);
  oldest @10 :UInt32;  # protocol that it speaks, too
}

struct Row {
  key @0 :Data;
  value @1 :Data;
  removed @2 :Bool;
}

struct Batch {
  term @0 :UInt64;
  commit @1 :UInt64;
  rows @2 :List(Row);
}

# One direction of a connection. Dropped without end(): it has broken.
interface ByteSink {
  write @0 (bytes :Data) -> ();
  end @1 () -> ();
}

# What the leader calls.
interface Following {
  append @0 (batch :Batch) -> (commit :UInt64);       # the last one that is synced: below the batch's if some are missing
  beat @1 (term :UInt64, commit :UInt64) -> (heeded :Bool);  # the leader's last one; 0: an older leader does not say
  sit @2 (term :UInt64, seat :Text) -> (done :Bool);  # keeps the seat durably
  release @3 (term :UInt64) -> ();                    # the leader has given up the lead, for us
}

# A copy of the journal. It lasts as long as the capability.
interface Checkpoint {
  struct File {
    name @0 :Text;
    size @1 :UInt64;
  }
  files @0 () -> (files :List(File));
  read @1 (file :UInt32, offset :UInt64) -> (bytes :Data);  # up to 1 MiB; empty: the end
}

# What a follower calls.
interface Leading {
  struct Answer {
    term @0 :UInt64;
    cluster @1 :Text;
    union {
      refused @2 :Text;          # why; tried again after some seconds
      later @3 :Text;            # why it is ready for nobody; tried again soon
      follows @4 :Void;          # it gets all later batches
      checkpoint @5 :Checkpoint; # its journal is not the beginning of ours, or it lacks too much; it joins again with this one
    }
  }
  join @0 (replica :Replica, following :Following) -> (answer :Answer);
  # A client's connection to the API, which the follower passes on. `uid`: of a user of the follower's machine; negative for a
  # connection over TLS, whose requests have tokens. `source`: for the audit log. `host`: the follower's own address on the
  # connection, without port.
  pass @1 (uid :Int64, source :Text, host :Text, back :ByteSink) -> (forth :ByteSink);
  leave @2 () -> ();             # the follower ends; commits do not wait for it
}
