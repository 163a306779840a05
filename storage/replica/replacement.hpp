// Replacement: puts a database that was fetched from another coordinator in place of a data-dir's
// own. It is fetched into DIR/incoming; once that is complete, the note DIR/replacing decides that
// it takes the place of DIR/db, whatever is interrupted from then on.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::storage {

class Replacement {
 public:
  // Begins anew: what an interrupted one has left is removed. The data-dir exists, and nobody else
  // uses it.
  static Result<Replacement> begin(const std::string& data_dir);

  // Starts the next file; its name has no `/`. `invalid`: it is not a name of a database's file.
  Status next_file(std::string_view name);
  Status write(std::string_view bytes);
  // Makes everything durable and takes the place of the database, which must not be open.
  Status finish();

 private:
  explicit Replacement(std::string data_dir) : data_dir_(std::move(data_dir)) {}
  Status end_file();

  std::string data_dir_;
  Fd file_;
};

// Finishes a replacement that was interrupted after it was decided, and removes what remains of
// others. Call before the journal is opened.
Status finish_replacement(const std::string& data_dir);

}  // namespace muster::storage
