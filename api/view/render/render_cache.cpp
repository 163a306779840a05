#include "api/view/render/render_cache.hpp"

namespace muster::api {

void RenderCache::append(std::string& out, const Shown& shown, Form form, bool columns) {
  // Removed and initial objects come without their own version.
  if (form == Form::table || shown.kind == Kind::node || shown.own_version == 0)
    return renderer_.whole(out, shown, form, columns);
  const Name name{key_of(shown), shown.own_version, shown.version, form, shown.summary};
  auto found = texts_.find(name);
  if (found == texts_.end()) {
    std::string text;
    renderer_.whole(text, shown, form, columns);
    bytes_ += text.size();
    found = texts_.emplace(name, std::move(text)).first;
    order_.push_back(name);
    while (bytes_ > kBytesMax && order_.size() > 1) {
      auto oldest = texts_.find(order_.front());
      bytes_ -= oldest->second.size();
      texts_.erase(oldest);
      order_.pop_front();
    }
  }
  out += found->second;
}

}  // namespace muster::api
