// rhea as a peer: node rhea_peer.js URL SCENARIO QUEUE prints one line of JSON with what it saw.
// A message is shown as [body, count]; count is the delivery-count of its header.
//
// rhea speaks AMQP 1.0 without knowing transactions, but lets its user say everything that the standard needs for them:
// a target of any type, described values, and the state of a delivery.
'use strict';

const rhea = require('rhea');
const { types, message: codec } = rhea;

const COORDINATOR = 0x30, DECLARE = 0x31, DISCHARGE = 0x32, DECLARED = 0x33, TRANSACTIONAL_STATE = 0x34;
const STATE_OF_TRANSFER = 7; // its place in the list of the performative's fields

const described = (code, ...fields) => types.described(types.wrap_ulong(code), types.wrap_list(fields));
const show = (contexts) => contexts.map((c) => [c.message.body, c.message.delivery_count || 0]);
const once = (emitter, name) => new Promise((resolve) => emitter.once(name, resolve));

const turn = () => new Promise((resolve) => setImmediate(resolve));

// `queue` tells brokers which know both that an anycast node is meant.
const node = (address) => ({ address, capabilities: ['queue'] });

function connect(url) {
    const { hostname, port, username, password } = new URL(url);
    // Without a name rhea goes in as ANONYMOUS, with one and a password as PLAIN.
    const credentials = username ? { username, password } : { username: 'anyone' };
    const container = rhea.create_container();
    const place = url.startsWith('amqpws')
        ? { connection_details: container.websocket_connect(require('ws'))(url.replace('amqp', ''), ['amqp']) }
        : { host: hostname, port: Number(port) };
    const connection = container.connect({ ...place, reconnect: false, ...credentials });
    const fail = (context) => {
        const error = context.connection.error || context.error || (context.session && context.session.error);
        console.error(error && error.condition ? `${error.condition}: ${error.description}` : String(error || 'lost'));
        process.exit(1);
    };
    for (const name of ['connection_error', 'session_error', 'disconnected']) connection.on(name, fail);
    return once(connection, 'connection_open').then(() => connection);
}

function close(connection) {
    connection.removeAllListeners('disconnected');
    connection.close();
    return once(connection, 'connection_close');
}

function openSession(connection) {
    const session = connection.create_session();
    session.begin();
    // delivery-id -> the state that its transfer carries
    session.transfer_states = new Map();
    return session;
}

async function openSender(session, address) {
    const sender = session.open_sender({ target: node(address), autosettle: true, treat_modified_as_released: false });
    await once(sender, 'sendable');
    return sender;
}

/** Sends one message and waits for the outcome, which is its result. */
async function send(sender, body, state) {
    const delivery = sender.send({ durable: true, body });
    if (state) sender.session.transfer_states.set(delivery.id, state);
    await new Promise((resolve) => {
        const listener = (context) => {
            if (context.delivery !== delivery) return;
            sender.removeListener('settled', listener);
            resolve();
        };
        sender.on('settled', listener);
    });
    return delivery.remote_state;
}

/** A receiver that never accepts by itself and has no more credit than it is given. */
async function openReceiver(session, address) {
    const receiver = session.open_receiver({ source: node(address), credit_window: 0, autoaccept: false });
    receiver.inbox = [];
    receiver.on('message', (context) => { receiver.inbox.push(context); receiver.emit('arrived'); });
    await once(receiver, 'receiver_open');
    return receiver;
}

async function take(receiver, count) {
    while (receiver.inbox.length < count) await once(receiver, 'arrived');
    return receiver.inbox.splice(0, count);
}

/** Everything there is: credit, drain, and the sender's word that no more comes. */
async function rest(receiver) {
    receiver.add_credit(100);
    receiver.drain_credit();
    await once(receiver, 'receiver_drained');
    receiver.drain = false;
    return receiver.inbox.splice(0);
}

async function empty(session, address) {
    const receiver = await openReceiver(session, address);
    const contexts = await rest(receiver);
    contexts.forEach((c) => c.delivery.accept());
    receiver.close();
    await once(receiver, 'receiver_close');
    return show(contexts);
}

async function fill(session, address, bodies) {
    const sender = await openSender(session, address);
    const states = await Promise.all(bodies.map((body) => send(sender, body)));
    sender.close();
    return states.map((state) => state.constructor.composite_type);
}

/** The controller's side of a local transaction: one coordinator link, one transaction at a time. */
class Transaction {
    static async begin(session) {
        const link = session.open_sender({});
        link.local.attach.target = described(COORDINATOR, types.wrap_array([types.wrap_symbol('amqp:local-transactions')], 0xa3));
        await once(link, 'sendable');
        const transaction = new Transaction();
        transaction.link = link;
        const state = await transaction.control(described(DECLARE));
        if (Number(state.descriptor.value) !== DECLARED) throw new Error('not declared: ' + JSON.stringify(state));
        transaction.id = state.value[0].value;
        // rhea has no argument for the state of a transfer, so it is put in where the session hands its frames over.
        const output = session.output;
        session.output = function (frame, payload) {
            const state = frame.delivery_id !== undefined && this.transfer_states.get(Number(frame.delivery_id));
            if (state) frame.value[STATE_OF_TRANSFER] = state;
            return output.call(this, frame, payload);
        };
        return transaction;
    }

    state(outcome) {
        return outcome ? described(TRANSACTIONAL_STATE, types.wrap_binary(this.id), outcome) : described(TRANSACTIONAL_STATE, types.wrap_binary(this.id));
    }

    accept(context) {
        context.delivery.update(true, this.state(codec.accepted().described()));
    }

    async discharge(fail) {
        const state = await this.control(described(DISCHARGE, types.wrap_binary(this.id), types.wrap_boolean(fail)));
        if (state.constructor.composite_type !== 'accepted') throw new Error('not discharged: ' + JSON.stringify(state));
    }

    async control(body) {
        // An amqp-value section around a described list; rhea's own encoder would put one descriptor in place of the other.
        const writer = new types.Writer();
        writer.write(body);
        const delivery = this.link.send(Buffer.concat([Buffer.from([0x00, 0x53, 0x77]), writer.toBuffer()]), undefined, 0);
        // rhea does not know the outcome `declared`, says so on standard error, and hands it over as it came.
        while (!delivery.remote_settled) await once(this.link, 'settled');
        return delivery.remote_state;
    }
}

const scenarios = {
    async send(connection, queue) {
        return { outcomes: await fill(openSession(connection), queue, ['m1', 'm2', 'm3']) };
    },

    async receive(connection, queue) {
        return { received: await empty(openSession(connection), queue) };
    },

    async outcomes(connection, queue, url) {
        const session = openSession(connection);
        await fill(session, queue, ['m1', 'm2', 'm3', 'm4']);
        const receiver = await openReceiver(session, queue);
        receiver.add_credit(10);
        const first = await take(receiver, 4);
        const outcomes = [
            (d) => d.reject({ condition: 'test:bad', description: 'no good' }),
            (d) => d.release(),
            (d) => d.modified({ delivery_failed: true }),
            (d) => d.modified({ delivery_failed: true, undeliverable_here: true }),
        ];
        for (const [i, outcome] of outcomes.entries()) {
            outcome(first[i].delivery);
            // rhea merges neighbours settled in one turn of its loop into one range, whatever their states are.
            await turn();
        }
        const again = await take(receiver, 2);
        again.forEach((c) => c.delivery.accept());
        const extra = await rest(receiver);
        const elsewhere = await connect(url);
        const other = await empty(openSession(elsewhere), queue);
        await close(elsewhere);
        return { first: show(first), again: show(again), extra: show(extra), elsewhere: other };
    },

    async commit(connection, queue) {
        const session = openSession(connection);
        await fill(session, queue, ['m1', 'm2', 'm3', 'm4']);
        const receiver = await openReceiver(session, queue);
        receiver.add_credit(4);
        const prefetched = await take(receiver, 4);
        const transaction = await Transaction.begin(session);
        for (const c of prefetched.slice(0, 2)) { transaction.accept(c); await turn(); }
        const sender = await openSender(session, queue + '.out');
        for (const body of ['a', 'b']) await send(sender, body, transaction.state());
        const before = await empty(session, queue + '.out');
        await transaction.discharge(false);
        const after = await empty(session, queue + '.out');
        for (const c of prefetched.slice(2)) { c.delivery.release(); await turn(); }
        return { received: show(prefetched.slice(0, 2)), out_before: before, out_after: after, left: await empty(session, queue) };
    },

    async rollback(connection, queue) {
        const session = openSession(connection);
        await fill(session, queue, ['m1', 'm2', 'm3', 'm4', 'm5']);
        const receiver = await openReceiver(session, queue);
        receiver.add_credit(5);
        const prefetched = await take(receiver, 5);
        const transaction = await Transaction.begin(session);
        for (const c of prefetched.slice(0, 2)) { transaction.accept(c); await turn(); }
        const sender = await openSender(session, queue + '.out');
        await send(sender, 'a', transaction.state());
        await transaction.discharge(true);
        for (const c of prefetched.slice(2)) { c.delivery.release(); await turn(); }
        receiver.add_credit(5);
        const again = await take(receiver, 5);
        again.forEach((c) => c.delivery.accept());
        return { received: show(prefetched.slice(0, 2)), again: show(again), out: await empty(session, queue + '.out'), left: await empty(session, queue) };
    },

    async large(connection, queue) {
        const session = openSession(connection);
        const data = Buffer.from(Uint8Array.from({ length: 1 << 20 }, (_, i) => i % 251));
        const sender = await openSender(session, queue);
        await send(sender, codec.data_section(data));
        const receiver = await openReceiver(session, queue);
        receiver.add_credit(1);
        const [context] = await take(receiver, 1);
        context.delivery.accept();
        return { equal: data.equals(context.message.body.content) };
    },
};

async function main([url, scenario, queue]) {
    const connection = await connect(url);
    const seen = await scenarios[scenario](connection, queue, url);
    await close(connection);
    console.log(JSON.stringify(seen));
}

process.on('unhandledRejection', (error) => { throw error; });
main(process.argv.slice(2));
