// A node of Fast DDS alone, secured by an enclave as rmw_fastrtps would be, or in clear. It is what SROS2's keystores are for.
//
//   fastdds-peer publish|subscribe ENCLAVE_FOLDER|- DOMAIN TOPIC FIRST
//
// Publishes FIRST, FIRST + 1 and so on, or writes what it hears in a line each, until its standard input ends. It says "ready" once
// its endpoint is there. Exit code 2: no participant; 3: no endpoint.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

namespace fast = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

namespace {

using Value = std::uint32_t;

/// One number, in CDR of little endian.
class ValueType : public fast::TopicDataType {
public:
    ValueType() {
        setName("std_msgs::msg::dds_::UInt32_");
        m_typeSize = HEAD + sizeof(Value);
        m_isGetKeyDefined = false;
    }

    bool serialize(void *value, rtps::SerializedPayload_t *payload) override {
        constexpr std::array<rtps::octet, HEAD> head{0, 1, 0, 0};
        std::memcpy(payload->data, head.data(), HEAD);
        std::memcpy(payload->data + HEAD, value, sizeof(Value));
        payload->encapsulation = CDR_LE;
        payload->length = m_typeSize;
        return true;
    }

    bool deserialize(rtps::SerializedPayload_t *payload, void *value) override {
        if (payload->length < m_typeSize) {
            return false;
        }
        std::memcpy(value, payload->data + HEAD, sizeof(Value));
        return true;
    }

    std::function<std::uint32_t()> getSerializedSizeProvider(void *) override {
        return [this] { return m_typeSize; };
    }

    void *createData() override { return new Value; }
    void deleteData(void *value) override { delete static_cast<Value *>(value); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }

private:
    static constexpr std::uint32_t HEAD = 4;
};

/// As rmw_fastrtps secures a participant.
void secure(fast::DomainParticipantQos &qos, const std::string &folder) {
    auto &properties = qos.properties().properties();
    const auto file = [&](const char *name, const char *in) {
        properties.emplace_back(std::string("dds.sec.") + name, "file://" + folder + "/" + in);
    };
    properties.emplace_back("dds.sec.auth.plugin", "builtin.PKI-DH");
    properties.emplace_back("dds.sec.access.plugin", "builtin.Access-Permissions");
    properties.emplace_back("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC");
    file("auth.builtin.PKI-DH.identity_ca", "identity_ca.cert.pem");
    file("auth.builtin.PKI-DH.identity_certificate", "cert.pem");
    file("auth.builtin.PKI-DH.private_key", "key.pem");
    if (std::filesystem::exists(folder + "/crl.pem")) {
        file("auth.builtin.PKI-DH.identity_crl", "crl.pem");
    }
    file("access.builtin.Access-Permissions.permissions_ca", "permissions_ca.cert.pem");
    file("access.builtin.Access-Permissions.governance", "governance.p7s");
    file("access.builtin.Access-Permissions.permissions", "permissions.p7s");
}

/// Ends with the process: what is left to Fast DDS's own end crashed in 2.9.
[[noreturn]] void end(int code) {
    std::cout.flush();
    std::_Exit(code);
}

void say(const std::string &line) { std::cout << line << std::endl; }

} // namespace

int main(int count, char **words) {
    if (count != 6) {
        std::cerr << "usage: fastdds-peer publish|subscribe ENCLAVE_FOLDER|- DOMAIN TOPIC FIRST\n";
        return 1;
    }
    const bool publishes = std::string(words[1]) == "publish";
    const std::string folder = words[2];
    const auto domain = static_cast<std::uint32_t>(std::atoi(words[3]));

    fast::DomainParticipantQos qos;
    // Nothing leaves the machine.
    auto loopback = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    loopback->interfaceWhiteList.emplace_back("127.0.0.1");
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(loopback);
    if (folder != "-") {
        secure(qos, folder);
    }
    auto *participant = fast::DomainParticipantFactory::get_instance()->create_participant(domain, qos);
    if (participant == nullptr) {
        end(2);
    }
    fast::TypeSupport type(new ValueType);
    type.register_type(participant);
    auto *topic = participant->create_topic(words[4], type.get_type_name(), fast::TOPIC_QOS_DEFAULT);
    fast::DataWriter *writer = nullptr;
    fast::DataReader *reader = nullptr;
    if (publishes) {
        writer = participant->create_publisher(fast::PUBLISHER_QOS_DEFAULT)->create_datawriter(topic, fast::DATAWRITER_QOS_DEFAULT);
    } else {
        reader = participant->create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT)->create_datareader(topic, fast::DATAREADER_QOS_DEFAULT);
    }
    if (writer == nullptr && reader == nullptr) {
        end(3);
    }
    say("ready");

    std::thread([] {
        char byte = 0;
        while (read(STDIN_FILENO, &byte, 1) > 0) {
        }
        end(0);
    }).detach();
    for (auto value = static_cast<Value>(std::atoi(words[5]));; ++value) {
        if (writer != nullptr) {
            writer->write(&value);
        } else {
            Value heard = 0;
            fast::SampleInfo info;
            while (reader->take_next_sample(&heard, &info) == eprosima::fastrtps::types::ReturnCode_t::RETCODE_OK) {
                if (info.valid_data) {
                    say(std::to_string(heard));
                }
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}
