// Rows of a batch on the wire.
#pragma once

#include "storage/journal/journal.hpp"

#include <schema/standby.capnp.h>
#include <string>
#include <vector>

namespace muster::standby {

inline void write_rows(const std::vector<storage::Row>& rows, capnp::List<wire::Row>::Builder out) {
  const auto bytes = [](const std::string& text) {
    return capnp::Data::Reader(reinterpret_cast<const capnp::byte*>(text.data()), text.size());
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    auto row = out[static_cast<unsigned>(i)];
    row.setKey(bytes(rows[i].key));
    if (rows[i].value)
      row.setValue(bytes(*rows[i].value));
    else
      row.setRemoved(true);
  }
}

inline std::vector<storage::Row> read_rows(capnp::List<wire::Row>::Reader in) {
  const auto text = [](capnp::Data::Reader bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  };
  std::vector<storage::Row> rows;
  rows.reserve(in.size());
  for (const auto row : in) {
    rows.push_back({text(row.getKey()), std::nullopt});
    if (!row.getRemoved()) rows.back().value = text(row.getValue());
  }
  return rows;
}

}  // namespace muster::standby
