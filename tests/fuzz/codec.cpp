// Fuzz target: journal rows (records, snapshots, nodes). Whatever decodes must survive an encode
// and decode unchanged.
//
// Input: one byte that selects the kind of row, then the row.
#include "storage/codec/codec.hpp"

#include "base/check.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::storage;
  if (size == 0) return 0;
  const std::string_view row(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      if (auto records = decode_records(row); records.ok()) {
        const std::string bytes = encode_records(*records);
        auto again = decode_records(bytes);
        MUSTER_CHECK(again.ok() && encode_records(*again) == bytes);
      }
      break;
    case 1:
      if (auto snapshot = decode_state(row); snapshot.ok()) {
        const std::string bytes = encode_state(snapshot->state, snapshot->sequence);
        auto again = decode_state(bytes);
        MUSTER_CHECK(again.ok() && encode_state(again->state, again->sequence) == bytes);
      }
      break;
    default:
      if (auto node = decode_node(row); node.ok()) {
        const std::string bytes = encode_node(*node);
        auto again = decode_node(bytes);
        MUSTER_CHECK(again.ok() && encode_node(*again) == bytes);
      }
      break;
  }
  return 0;
}
