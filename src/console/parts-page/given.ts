import type { Kit } from './kit.js';

/** What the page shows; filled before anything is drawn (kit.ts says why it is not imported). */
export const kit = {} as Kit;
