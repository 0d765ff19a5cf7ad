// A server of AMQP over WebSocket that is not ours: node rhea_websocket_server.js prints its port, then whatever is sent to
// an address goes to who receives from it, in order.
'use strict';

const rhea = require('rhea');
const { WebSocketServer } = require('ws');

const container = rhea.create_container();
const queues = new Map();
const queue = (address) => queues.get(address) || queues.set(address, { messages: [], senders: [] }).get(address);

function serve({ messages, senders }) {
    for (const sender of senders) while (messages.length && sender.sendable()) sender.send(messages.shift());
}

container.on('sender_open', ({ sender }) => {
    sender.set_source(sender.source);
    queue(sender.source.address).senders.push(sender);
});
container.on('receiver_open', ({ receiver }) => receiver.set_target(receiver.target));
container.on('sendable', ({ sender }) => serve(queue(sender.source.address)));
container.on('message', ({ receiver, message }) => {
    const to = queue(receiver.target.address);
    to.messages.push(message);
    serve(to);
});
container.on('sender_draining', ({ sender }) => {
    serve(queue(sender.source.address));
    sender.set_drained(true);
});
container.on('disconnected', () => undefined);

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: (names) => names.has('amqp') && 'amqp' });
server.on('listening', () => console.log(server.address().port));
server.on('connection', (socket) => container.websocket_accept(socket));
