import { openWebhookReceiver } from '../helpers/webhook-receiver.js';

/**
 * Receivers in a process of their own, so that the writer who is measured does not also answer the deliveries. Told how
 * many, answers their addresses; then answers any message with what each has received.
 */
const receivers = await Promise.all(Array.from({ length: Number(process.argv[2]) }, openWebhookReceiver));
process.on('message', () => process.send!(receivers.map(({ received }) => received.length)));
process.send!(receivers.map(({ url }) => url));
