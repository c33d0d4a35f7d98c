// A node of Fast DDS alone, secured by an enclave as rmw_fastrtps would be, or in clear. It is what SROS2's keystores are for.
//
//   fastdds-peer publish|subscribe ENCLAVE_FOLDER|- DOMAIN TOPIC FIRST
//   fastdds-peer serve|call ENCLAVE_FOLDER|- DOMAIN SERVICE FIRST
//
// Publishes FIRST, FIRST + 1 and so on, or writes what it hears in a line each, until its standard input ends. Or it serves a service of
// the type std_srvs/srv/SetBool, or calls it with true again and again, as rmw_fastrtps does, and writes a line for each request or reply.
// It says "ready" once its endpoints are there. Exit code 2: no participant; 3: no endpoint.
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
#include <utility>
#include <vector>

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
/// A message in CDR of little endian, without its head.
using Body = std::vector<rtps::octet>;

class BodyType : public fast::TopicDataType {
public:
    explicit BodyType(const std::string &name) {
        setName(name.c_str());
        m_typeSize = BYTES_MAX;
        m_isGetKeyDefined = false;
    }

    bool serialize(void *value, rtps::SerializedPayload_t *payload) override {
        constexpr std::array<rtps::octet, HEAD> head{0, 1, 0, 0};
        const auto &body = *static_cast<Body *>(value);
        std::memcpy(payload->data, head.data(), HEAD);
        std::memcpy(payload->data + HEAD, body.data(), body.size());
        payload->encapsulation = CDR_LE;
        payload->length = HEAD + static_cast<std::uint32_t>(body.size());
        return true;
    }

    bool deserialize(rtps::SerializedPayload_t *payload, void *value) override {
        if (payload->length < HEAD) {
            return false;
        }
        static_cast<Body *>(value)->assign(payload->data + HEAD, payload->data + payload->length);
        return true;
    }

    std::function<std::uint32_t()> getSerializedSizeProvider(void *value) override {
        return [value] { return HEAD + static_cast<std::uint32_t>(static_cast<Body *>(value)->size()); };
    }

    void *createData() override { return new Body; }
    void deleteData(void *value) override { delete static_cast<Body *>(value); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }

private:
    static constexpr std::uint32_t HEAD = 4;
    static constexpr std::uint32_t BYTES_MAX = 256;
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

fast::Topic *topic_of(fast::DomainParticipant &participant, const std::string &name, const std::string &type) {
    fast::TypeSupport(new BodyType(type)).register_type(&participant);
    return participant.create_topic(name, type, fast::TOPIC_QOS_DEFAULT);
}

fast::DataWriter *writer_of(fast::DomainParticipant &participant, fast::Topic *topic) {
    auto *writer = participant.create_publisher(fast::PUBLISHER_QOS_DEFAULT)->create_datawriter(topic, fast::DATAWRITER_QOS_DEFAULT);
    return writer != nullptr ? writer : (end(3), nullptr);
}

fast::DataReader *reader_of(fast::DomainParticipant &participant, fast::Topic *topic) {
    auto qos = fast::DATAREADER_QOS_DEFAULT;
    qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
    auto *reader = participant.create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT)->create_datareader(topic, qos);
    return reader != nullptr ? reader : (end(3), nullptr);
}

/// Takes all that has come.
template <typename Each> void take(fast::DataReader &reader, Each &&each) {
    Body body;
    fast::SampleInfo info;
    while (reader.take_next_sample(&body, &info) == eprosima::fastrtps::types::ReturnCode_t::RETCODE_OK) {
        if (info.valid_data) {
            each(body, info);
        }
    }
}

/// The topics of a service, and the types of std_srvs/srv/SetBool there.
std::pair<fast::Topic *, fast::Topic *> halves(fast::DomainParticipant &participant, const std::string &service) {
    return {topic_of(participant, "rq/" + service + "Request", "std_srvs::srv::dds_::SetBool_Request_"),
            topic_of(participant, "rr/" + service + "Reply", "std_srvs::srv::dds_::SetBool_Response_")};
}

/// What is done again and again.
using Turn = std::function<void()>;

Turn serves(fast::DomainParticipant &participant, const std::string &service) {
    const auto [asked, answered] = halves(participant, service);
    auto *requests = reader_of(participant, asked);
    auto *replies = writer_of(participant, answered);
    return [=] {
        take(*requests, [=](const Body &request, const fast::SampleInfo &info) {
            const bool value = !request.empty() && request[0] != 0;
            // The reply names the request, and the reader of replies where the client has told it.
            auto identity = info.sample_identity;
            if (info.related_sample_identity.writer_guid() != rtps::GUID_t::unknown()) {
                identity.writer_guid(info.related_sample_identity.writer_guid());
            }
            rtps::WriteParams about;
            about.related_sample_identity(identity);
            Body reply{static_cast<rtps::octet>(value), 0, 0, 0, 7, 0, 0, 0, 's', 'e', 'r', 'v', 'e', 'd', 0};
            replies->write(&reply, about);
            say(value ? "true" : "false");
        });
    };
}

Turn calls(fast::DomainParticipant &participant, const std::string &service) {
    const auto [asked, answered] = halves(participant, service);
    auto *requests = writer_of(participant, asked);
    auto *replies = reader_of(participant, answered);
    return [=] {
        rtps::WriteParams about;
        about.related_sample_identity().writer_guid(replies->guid());
        Body request{1};
        requests->write(&request, about);
        take(*replies, [=](const Body &reply, const fast::SampleInfo &info) {
            const auto &whose = info.related_sample_identity.writer_guid();
            if (whose == replies->guid() || whose == requests->guid()) {
                say(!reply.empty() && reply[0] != 0 ? "true" : "false");
            }
        });
    };
}

Turn publishes(fast::DomainParticipant &participant, const std::string &topic, Value value) {
    auto *writer = writer_of(participant, topic_of(participant, topic, "std_msgs::msg::dds_::UInt32_"));
    return [=]() mutable {
        Body body(sizeof(Value));
        std::memcpy(body.data(), &value, sizeof(Value));
        writer->write(&body);
        ++value;
    };
}

Turn subscribes(fast::DomainParticipant &participant, const std::string &topic) {
    auto *reader = reader_of(participant, topic_of(participant, topic, "std_msgs::msg::dds_::UInt32_"));
    return [=] {
        take(*reader, [](const Body &body, const fast::SampleInfo &) {
            Value heard = 0;
            if (sizeof(Value) <= body.size()) {
                std::memcpy(&heard, body.data(), sizeof(Value));
                say(std::to_string(heard));
            }
        });
    };
}

} // namespace

int main(int count, char **words) {
    const std::string what = count == 6 ? words[1] : "";
    if (what != "publish" && what != "subscribe" && what != "serve" && what != "call") {
        std::cerr << "usage: fastdds-peer publish|subscribe|serve|call ENCLAVE_FOLDER|- DOMAIN TOPIC|SERVICE FIRST\n";
        return 1;
    }
    const std::string folder = words[2];
    const auto domain = static_cast<std::uint32_t>(std::atoi(words[3]));
    const std::string name = words[4];

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
    const Turn turn = what == "publish" ? publishes(*participant, name, static_cast<Value>(std::atoi(words[5])))
        : what == "subscribe"           ? subscribes(*participant, name)
        : what == "serve"               ? serves(*participant, name)
                                        : calls(*participant, name);
    say("ready");

    std::thread([] {
        char byte = 0;
        while (read(STDIN_FILENO, &byte, 1) > 0) {
        }
        end(0);
    }).detach();
    for (;;) {
        turn();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}
