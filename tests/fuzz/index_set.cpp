// Fuzz target: index sets parsed leniently and strictly. The text of a parsed set must parse back
// to the same set.
//
// Input: the number of completions (four bytes, little endian), then the text.
#include "core/index_set.hpp"

#include "base/check.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::core::IndexSet;
  uint32_t completions = 0;
  if (size < sizeof completions) return 0;
  std::memcpy(&completions, data, sizeof completions);
  const std::string_view text(reinterpret_cast<const char*>(data) + sizeof completions,
                              size - sizeof completions);
  for (const IndexSet& set : {IndexSet::parse_lenient(text, completions), [&] {
                                auto strict = IndexSet::parse_strict(text, completions);
                                return strict.ok() ? *strict : IndexSet();
                              }()}) {
    MUSTER_CHECK(set.size() <= completions, text);
    auto again = IndexSet::parse_strict(set.text(), completions);
    MUSTER_CHECK(set.empty() || (again.ok() && *again == set), text, set.text());
    uint64_t size_found = 0;
    for (const auto& [first, last] : set.intervals()) {
      MUSTER_CHECK(first <= last && set.contains(first) && set.contains(last), text);
      size_found += uint64_t{last} - first + 1;
    }
    MUSTER_CHECK(size_found == set.size(), text);
  }
  return 0;
}
