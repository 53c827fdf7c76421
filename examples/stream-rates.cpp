// SPDX-License-Identifier: MIT
//
// The same API from C++: events per second of each CPU's data stream.
//
//	c++ stream-rates.cpp $(pkg-config --cflags --libs kymo) -o stream-rates
//	./stream-rates my-trace
#include <cstdio>
#include <memory>
#include <vector>

#include <kymo/reader.h>

// A reader that closes itself.
using Reader = std::unique_ptr<kymo_reader, decltype(&kymo_reader_close)>;

int main(int argc, char **argv)
{
	if (argc < 2) {
		std::fprintf(stderr, "usage: stream-rates TRACE...\n");
		return 2;
	}

	kymo_reader_options options = kymo_reader_options_init();
	options.log = [](void *, kymo_log_level, const char *text) {
		std::fprintf(stderr, "note: %s\n", text);
	};

	kymo_error err;
	kymo_reader *opened = nullptr;
	if (kymo_reader_open(&argv[1], argc - 1, &options, &opened, &err) < 0) {
		std::fprintf(stderr, "%s: %s\n", err.path, err.message);
		return 1;
	}
	Reader reader(opened, kymo_reader_close);

	std::vector<std::size_t> counts(kymo_reader_n_streams(reader.get()));
	kymo_batch batch;
	int ret;
	while ((ret = kymo_reader_next(reader.get(), &batch, &err)) > 0)
		kymo_batch_foreach(&batch, event)
			counts[kymo_stream_index(kymo_batch_stream(&batch, event))]++;
	if (ret < 0) {
		std::fprintf(stderr, "%s at byte %llu: %s\n", err.path,
			     static_cast<unsigned long long>(err.offset), err.message);
		return 1;
	}

	int64_t begin_ns, end_ns;
	kymo_reader_range(reader.get(), &begin_ns, &end_ns, nullptr);
	const double seconds = static_cast<double>(end_ns - begin_ns) / 1e9;
	for (std::size_t i = 0; i < counts.size(); i++)
		std::printf("%-20s %10zu events %12.0f /s\n",
			    kymo_stream_name(kymo_reader_stream(reader.get(), i)), counts[i],
			    seconds > 0 ? static_cast<double>(counts[i]) / seconds : 0.0);
	return 0;
}
