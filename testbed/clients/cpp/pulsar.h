// The part of Pulsar's C++ API that `main.cc` uses, as its public headers declare it.
//
// No package has these headers. The library itself is inside the wheel of pulsar-client, which is
// built upon it. Each class has one member: a shared pointer to what the library keeps of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace pulsar {

enum Result : int8_t { ResultOk = 0 };
enum class KeyValueEncodingType : uint8_t { SEPARATED, INLINE };
enum SchemaType : int8_t {
    STRING = 1, JSON = 2, INT8 = 6, INT16 = 7, INT32 = 8, INT64 = 9, FLOAT = 10, DOUBLE = 11, BYTES = -1
};

const char* strResult(Result result);

class SchemaInfo {
   public:
    SchemaInfo(SchemaType type, const std::string& name, const std::string& definition,
               const std::map<std::string, std::string>& properties);
    SchemaInfo(const SchemaInfo& key, const SchemaInfo& value, const KeyValueEncodingType& encoding);

   private:
    std::shared_ptr<void> impl_;
};

class KeyValue {
   public:
    KeyValue(std::string&& key, std::string&& value);
    std::string getKey() const;
    std::string getValueAsString() const;

   private:
    std::shared_ptr<void> impl_;
};

class MessageId {
   public:
    static const MessageId& earliest();

   private:
    std::shared_ptr<void> impl_;
};

class Message {
   public:
    Message();
    const std::string& getPartitionKey() const;
    KeyValue getKeyValueData() const;

   private:
    std::shared_ptr<void> impl_;
};

class MessageBuilder {
   public:
    MessageBuilder();
    Message build();
    MessageBuilder& setContent(const KeyValue& content);

   private:
    std::shared_ptr<void> impl_;
};

class ProducerConfiguration {
   public:
    ProducerConfiguration();
    ~ProducerConfiguration();
    ProducerConfiguration& setSchema(const SchemaInfo& schema);
    ProducerConfiguration& setBatchingEnabled(const bool& enabled);

   private:
    std::shared_ptr<void> impl_;
};

class Producer {
   public:
    Producer();
    void sendAsync(const Message& message, const std::function<void(Result, const MessageId&)>& done);
    Result flush();
    Result close();

   private:
    std::shared_ptr<void> impl_;
};

class ReaderConfiguration {
   public:
    ReaderConfiguration();
    ~ReaderConfiguration();
    ReaderConfiguration& setSchema(const SchemaInfo& schema);

   private:
    std::shared_ptr<void> impl_;
};

class Reader {
   public:
    Reader();
    Result readNext(Message& message, int timeoutMs);

   private:
    std::shared_ptr<void> impl_;
};

class Client {
   public:
    explicit Client(const std::string& serviceUrl);
    Result createProducer(const std::string& topic, const ProducerConfiguration& settings, Producer& producer);
    Result createReader(const std::string& topic, const MessageId& start, const ReaderConfiguration& settings,
                        Reader& reader);
    Result close();

   private:
    std::shared_ptr<void> impl_;
};

}  // namespace pulsar
