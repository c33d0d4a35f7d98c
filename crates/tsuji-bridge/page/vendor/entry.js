export { Ros, Service, Topic, WebSocketTransportFactory } from 'roslib';
