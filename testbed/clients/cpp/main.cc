// Sends KeyValue messages to a topic by Pulsar's C++ client, and reads them again by it.
//
// main SERVICE_URL TOPIC ENCODING KEY_TYPE KEY_DEFINITION VALUE_TYPE VALUE_DEFINITION BATCHED OUT
//
// ENCODING: "INLINE" or "SEPARATED". Types are numbers of SchemaType. BATCHED: "0" or "1". Standard
// input and the file OUT (the client's log is on standard output) have a line a message: key and
// value in hexadecimal, with a comma between them. OUT has them as this client reads them.
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "pulsar.h"

using namespace pulsar;

static void check(Result result, const char* what) {
    if (result == ResultOk) return;
    std::cerr << what << ": " << strResult(result) << std::endl;
    std::_Exit(1);
}

static std::string bytes(const std::string& digits) {
    std::string made;
    for (size_t at = 0; at + 1 < digits.size(); at += 2)
        made.push_back(static_cast<char>(std::stoi(digits.substr(at, 2), nullptr, 16)));
    return made;
}

static std::string hexadecimal(const std::string& bytes) {
    static const char* digits = "0123456789abcdef";
    std::string made;
    for (unsigned char byte : bytes) {
        made.push_back(digits[byte >> 4]);
        made.push_back(digits[byte & 15]);
    }
    return made;
}

static SchemaInfo half(const char* type, const char* definition, const char* name) {
    return SchemaInfo(static_cast<SchemaType>(std::atoi(type)), name, definition, {});
}

int main(int count, char** arguments) {
    if (count != 10) return 2;
    std::string topic = arguments[2];
    KeyValueEncodingType encoding =
        std::string(arguments[3]) == "INLINE" ? KeyValueEncodingType::INLINE : KeyValueEncodingType::SEPARATED;
    SchemaInfo schema(half(arguments[4], arguments[5], "key"), half(arguments[6], arguments[7], "value"),
                      encoding);
    Client client(arguments[1]);

    ProducerConfiguration settings;
    settings.setSchema(schema).setBatchingEnabled(std::string(arguments[8]) == "1");
    Producer producer;
    check(client.createProducer(topic, settings, producer), "createProducer");
    std::atomic<int> failed{ResultOk};
    size_t sent = 0;
    for (std::string line; std::getline(std::cin, line); ++sent) {
        size_t comma = line.find(',');
        KeyValue content(bytes(line.substr(0, comma)), bytes(line.substr(comma + 1)));
        producer.sendAsync(MessageBuilder().setContent(content).build(), [&](Result result, const MessageId&) {
            if (result != ResultOk) failed = result;
        });
    }
    check(producer.flush(), "flush");
    check(static_cast<Result>(failed.load()), "send");
    check(producer.close(), "close");

    ReaderConfiguration reading;
    reading.setSchema(schema);
    Reader reader;
    check(client.createReader(topic, MessageId::earliest(), reading, reader), "createReader");
    std::ofstream out(arguments[9]);
    for (size_t read = 0; read < sent; ++read) {
        Message message;
        check(reader.readNext(message, 10000), "readNext");
        KeyValue content = message.getKeyValueData();
        // This client leaves a separated key where it was sent.
        std::string key = encoding == KeyValueEncodingType::INLINE ? content.getKey() : message.getPartitionKey();
        out << hexadecimal(key) << ',' << hexadecimal(content.getValueAsString()) << '\n';
    }
    out.close();
    check(client.close(), "close");
    return 0;
}
