import { killDescendants } from '../helpers/process-tree.js';

// Loaded before every script of `npm run bench` and `npm run soak`: what one has started ends with it, however it ends.
process.on('exit', () => killDescendants(process.pid));
