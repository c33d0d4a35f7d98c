// In the place of the package `ws`, which browsers do not need: they have WebSockets.
export const WebSocket = globalThis.WebSocket;
export default WebSocket;
