// Inputs of typed commands: lines, combinations, CSV, ranges, and placeholders in the command.
#include "client/inputs/inputs.hpp"

#include "client/terminal/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/muster-inputs-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/" + name) << text;
    return dir_ + "/" + name;
  }
  std::string dir_;
};

using InputsOfFiles = Files;

TEST_F(InputsOfFiles, ALineIsAnInput) {
  const auto read = read_inputs({.files = {file("a", "x y\n\nz")}});
  ASSERT_TRUE(read);
  EXPECT_THAT(read->rows, ElementsAre(ElementsAre("x y"), ElementsAre(""), ElementsAre("z")));
}

TEST_F(InputsOfFiles, ALineIsACommand) {
  const auto read =
      read_commands(file("a",
                         "\xef\xbb\xbf"
                         "echo a | wc\r\n\n  # not this\n#nor this\n \t\n\techo \"#\"\ncd x\ty"));
  ASSERT_TRUE(read);
  EXPECT_THAT(read->rows, ElementsAre(ElementsAre("echo a | wc"), ElementsAre("\techo \"#\""),
                                      ElementsAre("cd x\ty")));
  EXPECT_EQ(read->blank, 0u);
  EXPECT_THAT(read_commands(file("b", "# nothing\n\n")).error().message,
              HasSubstr("b: has no commands"));
  EXPECT_THAT(read_commands(file("c", std::string("a\0b", 3))).error().message,
              HasSubstr("c: contains a null byte"));
  EXPECT_FALSE(read_commands(dir_ + "/none"));
}

TEST_F(InputsOfFiles, BlankLinesAreCountedAndMarksOfEditorsSkipped) {
  const auto read = read_inputs({.files = {file("a", "\xef\xbb\xbfx\n\ny\n\n")}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rows.front().front(), "x");
  EXPECT_EQ(read->blank, 2u);
  const auto both = read_inputs({.files = {file("b", "1\n\n"), file("c", "x\n\n")}});
  EXPECT_EQ(both->blank, 1u) << "of the combinations, the one without any text";
  const auto csv = read_inputs({.csv = file("d", "\xef\xbb\xbflr,seed\n1,2\n")});
  ASSERT_TRUE(csv);
  EXPECT_THAT(csv->names, ElementsAre("lr", "seed"));
}

TEST_F(InputsOfFiles, NamesOfNoColumnAreRefused) {
  const auto read = read_inputs({.csv = file("a", "lr,seed\n1,2\n")});
  const auto why = [&read](const std::string& word) {
    const auto words = with_references({"run", word}, *read);
    return words ? "" : words.error().message;
  };
  EXPECT_EQ(why("lr={lr} seed={sede}"),
            "{sede}: the header has no such column; did you mean seed?; it has lr, seed");
  for (const char* fine : {"{seed.}", "${sede}", "{print $1}", "{\"a\":1}", "{}", "{1}", "{ x }"})
    EXPECT_EQ(why(fine), "") << fine;
  for (const char* of_shell : {"${1}0", "${lr}", "${#}", "${seed.}"}) {
    const auto words = with_references({"sh", "-c", of_shell, "sh", "{}"}, *read);
    ASSERT_TRUE(words) << of_shell << ": " << words.error().message;
    EXPECT_EQ(words->at(2), "$" + std::string(of_shell)) << "its dollar is escaped";
  }
  const auto tabs = read_inputs({.csv = file("b", "lr\tseed\n1\t2\n")});
  EXPECT_EQ(
      with_references({"{lr}"}, *tabs).error().message,
      "{lr}: the header has no such column; it has no comma: columns are separated by commas here, "
      "by tabs with --each");
}

TEST_F(InputsOfFiles, NullBytesSeparateInputsOnRequest) {
  const auto read = read_inputs({.files = {file("a", std::string("x\ny\0z\0", 6))}, .null = true});
  ASSERT_TRUE(read);
  EXPECT_THAT(read->rows, ElementsAre(ElementsAre("x\ny"), ElementsAre("z")));
}

TEST_F(InputsOfFiles, SeveralFilesGiveAllCombinations) {
  const auto read = read_inputs({.files = {file("a", "1\n2\n"), file("b", "x\ny\n")}});
  ASSERT_TRUE(read);
  EXPECT_THAT(read->rows, ElementsAre(ElementsAre("1", "x"), ElementsAre("1", "y"),
                                      ElementsAre("2", "x"), ElementsAre("2", "y")));
}

TEST_F(InputsOfFiles, CsvHasAHeader) {
  const auto read = read_inputs({.csv = file("a", "lr,name\r\n0.1,\"a, \"\"b\"\"\nc\"\r\n0.2,\n")});
  ASSERT_TRUE(read);
  EXPECT_THAT(read->names, ElementsAre("lr", "name"));
  EXPECT_THAT(read->rows, ElementsAre(ElementsAre("0.1", "a, \"b\"\nc"), ElementsAre("0.2", "")));
}

TEST_F(InputsOfFiles, AnInputIsNoLongerThanAVariable) {
  const size_t most = (128 << 10) - sizeof "MUSTER_INPUT=";  // and a null byte
  const std::string fits(most, 'y'), longer(most + 1, 'y'), half(most / 2 + 1, 'y');
  const auto refused = [&](const Result<Inputs>& read) {
    return read ? "" : read.error().message.substr(read.error().message.rfind('/') + 1);
  };
  const std::string bytes = " has 131059 bytes, and an input at most 131058: ";
  EXPECT_EQ(refused(read_inputs({.files = {file("a", fits + "\n")}})), "");
  EXPECT_THAT(refused(read_inputs({.files = {file("a", "x\n" + longer + "\n")}})),
              HasSubstr("a: line 2" + bytes));
  EXPECT_THAT(refused(read_inputs({.files = {file("a", longer)}, .null = true})),
              HasSubstr("a: input 1" + bytes));
  EXPECT_THAT(refused(read_inputs({.csv = file("a", "a,b\n1,2\n" + half + "," + half + "\n")})),
              HasSubstr("a: line 3 has"));
  EXPECT_THAT(refused(read_inputs({.files = {file("a", half), file("b", "1\n" + half)}})),
              HasSubstr("input 1 has"));
  EXPECT_THAT(refused(read_commands(file("a", "# x\n" + longer + "\n"))),
              HasSubstr("a: line 2" + bytes));
}

TEST_F(InputsOfFiles, ErrorsNameTheFileAndThePlace) {
  const auto refusal = [](const EachWishes& each) {
    const auto read = read_inputs(each);
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(refusal({.files = {file("none", "")}}), HasSubstr("none: is empty"));
  EXPECT_THAT(refusal({.files = {"/no/such"}}), HasSubstr("/no/such: No such file"));
  EXPECT_THAT(refusal({.files = {file("null", std::string("a\0b\n", 4))}}), HasSubstr("use -0"));
  EXPECT_EQ(read_inputs({.csv = file("c", "a,b\n1,2\n\n \n")})->rows.size(), 1u);
  EXPECT_EQ(read_inputs({.csv = file("c", "a\n1\n\n")})->rows.size(), 2u) << "an empty value";
  EXPECT_EQ(read_inputs({.csv = file("c", "\na,b\n1,2\n\n3,4\n")})->rows.size(), 2u) << "blank";
  EXPECT_THAT(refusal({.csv = file("c", "a,b\n\n")}), HasSubstr("a header and a record"));
  EXPECT_THAT(refusal({.csv = file("c", "a,b\n1,\"2\n\"\n\n3\n")}),
              HasSubstr("c: line 5 has 1 column, the header has 2"));
  EXPECT_THAT(refusal({.csv = file("c", "lr,seed,lr,\n1,2,3,4\n")}),
              HasSubstr("c: line 1: columns 1 and 3 are both called lr"));
  EXPECT_TRUE(read_inputs({.csv = file("c", "a,,\n1,2,3\n")})) << "nameless columns have numbers";
  EXPECT_THAT(refusal({.csv = file("c", "a,b\n1,\"2\n")}), HasSubstr("line 2: the quote"));
  EXPECT_THAT(refusal({.csv = file("c", "a,b\n")}), HasSubstr("a header and a record"));
  const std::string thousand = file("t", [] {
    std::string text;
    for (int i = 0; i < 1'001; ++i) text += "x\n";
    return text;
  }());
  EXPECT_THAT(refusal({.files = {thousand, thousand}}),
              HasSubstr("too many inputs: 1002001 (at most"));
}

TEST_F(InputsOfFiles, DropsTheReturnsOfAllLinesOrOfNone) {
  for (const char* text : {"a\r\nb\r\n", "a\r\nb"}) {
    const auto read = read_inputs({.files = {file("w", text)}});
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->rows, (std::vector<core::Input>{{"a"}, {"b"}})) << text;
    EXPECT_TRUE(read->returns);
  }
  for (const auto& [text, first] : {std::pair("a\r\nb\n", "a\r"), std::pair("a\nb\r\n", "a")}) {
    const auto read = read_inputs({.files = {file("w", text)}});
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->rows[0][0], first);
    EXPECT_FALSE(read->returns);
  }
}

TEST(InputsOfArrays, RangesAreThoseOfSlurm) {
  int32_t at_once = 0;
  const auto values = [&at_once](const std::string& text) {
    std::string out;
    const auto read = array_inputs(text, at_once);
    if (!read) return std::string("refused");
    for (const core::Input& row : read->rows) out += (out.empty() ? "" : " ") + row.front();
    return out;
  };
  EXPECT_EQ(values("1-3"), "1 2 3");
  EXPECT_EQ(values("0-9:4,20"), "0 4 8 20");
  EXPECT_EQ(at_once, 0);
  EXPECT_EQ(values("7-8%10"), "7 8");
  EXPECT_EQ(values("5,1-3,2-4"), "1 2 3 4 5");  // P16: a set
  EXPECT_EQ(at_once, 10);
  for (const char* wrong : {"", "x", "3-1", "1-", "-1", "1-3:0", "1-3%0", "1-3%", "1,,2",
                            "1-3:", "1-9999999999", "0-9999999"})
    EXPECT_EQ(values(wrong), "refused") << wrong;
}

TEST(InputsOfArrays, RefusalsSayWhy) {
  const auto why = [](const std::string& text) {
    int32_t at_once = 0;
    return array_inputs(text, at_once).error().message.substr(0, text.size() + 40);
  };
  EXPECT_THAT(why("2147483648"), HasSubstr("the highest number is 2147483647"));
  EXPECT_THAT(why("1-99999999999"), HasSubstr("the highest number is 2147483647"));
  EXPECT_THAT(why("7,5-1"), HasSubstr("5-1 runs backwards"));
  EXPECT_THAT(why("1-10:0"), HasSubstr("the step of 1-10:0 is 0"));
  EXPECT_THAT(why("1,x2"), HasSubstr("`x2` is neither a number nor a range"));
}

Inputs two_columns() {
  return {{{"a", "b"}}, {"lr", "seed"}};
}

std::vector<std::string> referring(const std::vector<std::string>& command,
                                   const Inputs& inputs = {{{"a"}}, {}}) {
  auto words = with_references(command, inputs);
  EXPECT_TRUE(words);
  return words ? *words : std::vector<std::string>{};
}

TEST(Placeholders, BecomeReferences) {
  EXPECT_THAT(referring({"{}", "x{.}y{/}", "{//}/{/.}.gz", "{#}", "{1}", "{1/}"}),
              ElementsAre("$(MUSTER_INPUT)", "x$(MUSTER_INPUT.)y$(MUSTER_INPUT/)",
                          "$(MUSTER_INPUT//)/$(MUSTER_INPUT/.).gz", "$(MUSTER_INPUT#)",
                          "$(MUSTER_INPUT)", "$(MUSTER_INPUT/)"));
  EXPECT_THAT(referring({"{}", "{1}", "{2.}", "{lr}", "{seed/}"}, two_columns()),
              ElementsAre("$(MUSTER_INPUT)", "$(MUSTER_INPUT_1)", "$(MUSTER_INPUT_2.)",
                          "$(MUSTER_INPUT_1)", "$(MUSTER_INPUT_2/)"));
}

TEST(Placeholders, OtherTextIsEscapedAndUnchanged) {
  EXPECT_THAT(
      referring({"$HOME", "$(X)", "{print $1}", "{name}", "{", "}{", "{{}}"}),
      ElementsAre("$$HOME", "$$(X)", "{print $$1}", "{name}", "{", "}{", "{$(MUSTER_INPUT)}"));
}

TEST(Placeholders, AreRecognizedOnlyIfWellFormed) {
  EXPECT_FALSE(has_placeholder({"awk", "{print}", "{name}"}));
  EXPECT_TRUE(has_placeholder({"cp", "{}", "{/}"}));
  EXPECT_FALSE(has_placeholder({"grep", "-E", "a{3}"}));  // a placeholder only if there are inputs
}

TEST(Placeholders, AreRefusedInShellCode) {
  const auto refusal = [](const std::vector<std::string>& command) {
    const auto words = with_references(command, {{{"a"}}, {}});
    return words ? "" : words.error().message;
  };
  EXPECT_THAT(refusal({"sh", "-c", "echo {}"}), HasSubstr("would be read as code"));
  EXPECT_THAT(refusal({"sh", "-c", "{}"}), HasSubstr("use --commands FILE"));
  EXPECT_THAT(refusal({"/bin/bash", "-e", "-o", "pipefail", "-c", "echo {}"}),
              HasSubstr("would be read as code"));
  EXPECT_THAT(refusal({"/bin/bash", "-ec", "echo {/}"}), HasSubstr("use \"$MUSTER_INPUT\""));
  EXPECT_EQ(refusal({"sh", "-c", "echo \"$1\" {#}", "sh", "{}"}), "");
  EXPECT_EQ(refusal({"sh", "script", "{}"}), "");
  EXPECT_THAT(refusal({"cp", "{2}"}), HasSubstr("no such column; the inputs have 1"));
}

TEST(InputReferences, LinesWithTabsHaveColumns) {
  const auto words = [](std::vector<core::Input> rows, const std::string& word) {
    Inputs inputs;
    inputs.rows = std::move(rows);
    const auto made = with_references({"cp", word}, inputs);
    return made ? made->back() : made.error().message;
  };
  EXPECT_EQ(words({{"x\t1"}, {"y\t2"}}, "{2}-{1}"), "$(MUSTER_INPUT_2)-$(MUSTER_INPUT_1)");
  EXPECT_EQ(words({{"x\t1"}, {"y\t2"}}, "{}"), "$(MUSTER_INPUT)");
  EXPECT_EQ(words({{"x\t1\t"}, {"y\t2"}}, "{3}"),
            "{3}: there is no such column; the inputs have 2, as input 2 has; others have 3, "
            "separated by tabs");
}

TEST(InputsInAManifest, FewAreInAnnotationManyInFile) {
  Json few = Json::object();
  EXPECT_TRUE(add_inputs(few, {{{"a"}, {"b"}}, {}}).name.empty());
  EXPECT_EQ(text_at(few, {"metadata", "annotations", "muster.dev/inputs"}), "a\nb\n");
  const JobInputs shown(few);
  EXPECT_TRUE(shown.any());
  EXPECT_EQ(shown.of(1), "b");
  EXPECT_FALSE(shown.of(2));

  for (const std::vector<core::Input>& rows :
       {std::vector<core::Input>(70'000, {"a"}), {{"with\ttab", "b"}}, {{"not UTF-8 \xff"}}}) {
    Json many = Json::object();
    const InputsFile file = add_inputs(many, {rows, {}});
    EXPECT_FALSE(file.name.empty());
    EXPECT_TRUE(many.empty());
    const auto table = core::InputTable::of(file.bytes);
    ASSERT_TRUE(table);
    EXPECT_EQ(table->size(), rows.size());
    EXPECT_EQ(*table->row(rows.size() - 1), rows.back());
  }
}

// Files of inputs cannot be read where pods run as their owners.
TEST(InputsInAManifest, LinesWithTabsAndLongArraysNeedNoFile) {
  Json manifest = Json::object();
  EXPECT_TRUE(add_inputs(manifest, {{{"a\tb"}, {"c"}, {"\t"}}, {}}).name.empty());
  EXPECT_EQ(text_at(manifest, {"metadata", "annotations", "muster.dev/inputs"}), "a\tb\nc\n\t\n");
  const auto table = core::InputTable::of("a\tb\nc\n\t\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(core::input_text(*table->row(0)), "a\tb");
  EXPECT_EQ(core::input_text(*table->row(2)), "\t");

  std::string irregular;  // as long as a word of a command can be
  for (uint32_t number = 0; irregular.size() < (127 << 10); number += 2 + number % 3)
    irregular += (irregular.empty() ? "" : ",") + std::to_string(number);
  int32_t at_once = 0;
  const auto array = array_inputs(irregular, at_once);
  ASSERT_TRUE(array);
  EXPECT_TRUE(add_inputs(manifest, *array).name.empty());
  const auto ranges =
      core::InputTable::of(text_at(manifest, {"metadata", "annotations", "muster.dev/inputs"}));
  ASSERT_TRUE(ranges);
  EXPECT_EQ(ranges->size(), array->rows.size());
  EXPECT_EQ(*ranges->row(ranges->size() - 1), array->rows.back());
}

TEST(InputsInAManifest, MissingFileShowsNoInputs) {
  Json job = Json::object();
  name_file(job, "/no/such/file");
  EXPECT_FALSE(JobInputs(job).any());
  EXPECT_FALSE(JobInputs(Json()).any());
}

using InputsForAReader = Files;

TEST_F(InputsForAReader, AreThoseThatTheOwnerCouldRead) {
  const auto shown = [this](const std::string& name, const std::string& owner = "") {
    Json job = Json::object();
    name_file(job, dir_ + "/" + name);
    if (!owner.empty()) job["metadata"]["annotations"]["muster.dev/owner-uid"] = owner;
    return JobInputs(job).of(1).value_or("none");
  };
  std::filesystem::create_directory(dir_ + "/lists");
  file("lists/a", "x\ny\n");
  std::filesystem::create_symlink("lists", dir_ + "/link");
  EXPECT_EQ(shown("lists/a"), "y");
  EXPECT_EQ(shown("link/a"), "y");
  EXPECT_EQ(shown("lists"), "none");
  ASSERT_EQ(mkfifo((dir_ + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(shown("fifo"), "none") << "and it waits for no writer";
  // The job's owner is somebody else, and names a file of ours.
  EXPECT_EQ(shown("lists/a", std::to_string(geteuid() + 1)), "none");
  if (geteuid() != 0) GTEST_SKIP() << "needs root to be somebody else";
  ASSERT_EQ(chown((dir_ + "/lists/a").c_str(), 1234, 1234), 0);
  EXPECT_EQ(shown("lists/a", "1234"), "y");
  EXPECT_EQ(shown("link/a", "1234"), "y") << "a link of root";
  ASSERT_EQ(lchown((dir_ + "/link").c_str(), 4321, 4321), 0);
  EXPECT_EQ(shown("link/a", "1234"), "none");
  EXPECT_EQ(shown("link/a"), "none");
}

}  // namespace
}  // namespace muster::cli
