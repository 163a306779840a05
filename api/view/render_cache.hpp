// RenderCache: texts of objects as they were told last, for all watchers together.
//
// A thousand watchers are told of the same change within a moment, and making its text costs more
// than copying it. A text is settled by the object's version and by the version that is written
// into it, which a watch may choose differently (watch.hpp). Nodes have no version for what passes,
// and the cells of a table depend on the time: neither is kept. Bounded by bytes, the oldest goes
// first.
#pragma once

#include "api/view/render.hpp"
#include "api/view/view.hpp"

#include <deque>
#include <map>
#include <string>
#include <tuple>

namespace muster::api {

class RenderCache {
 public:
  explicit RenderCache(Renderer& renderer) : renderer_(renderer) {}

  // Appends the object in this form; `columns`: with the table's columns.
  void append(std::string& out, const Shown& shown, Form form, bool columns);

 private:
  static constexpr size_t kBytesMax = 8u << 20;
  // Version of the object and in the text.
  using Name = std::tuple<Key, uint64_t, uint64_t, Form>;

  Renderer& renderer_;
  std::map<Name, std::string> texts_;
  std::deque<Name> order_;
  size_t bytes_ = 0;
};

}  // namespace muster::api
