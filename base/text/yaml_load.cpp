#include "base/text/yaml_load.hpp"

#include <sstream>
#include <yaml-cpp/eventhandler.h>

namespace muster {
namespace {

// Records where documents begin and ignores everything else.
class Beginnings : public YAML::EventHandler {
 public:
  YAML::Mark last = YAML::Mark::null_mark();
  bool stuck = false;  // a document began where the previous one did

  void OnDocumentStart(const YAML::Mark& mark) override {
    stuck = !last.is_null() && mark.pos <= last.pos;
    last = mark;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

}  // namespace

std::vector<YAML::Node> load_all_yaml(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Beginnings seen;
  while (parser.HandleNextDocument(seen))
    if (seen.stuck) throw YAML::ParserException(seen.last, "expected the beginning of a value");
  return YAML::LoadAll(text);
}

}  // namespace muster
