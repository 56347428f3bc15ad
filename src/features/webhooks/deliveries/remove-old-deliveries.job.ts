import type { App } from '../../../app.js';
import type { JobDefinition } from '../../../platform/jobs/job.js';
import { isClockSteady } from '../../../platform/database/clock-drift.js';
import { deliveryStore } from './delivery.js';

/** Removes deliveries and their attempts after the days they are kept. */
export const removeOldDeliveriesJob: JobDefinition<App> = {
  name: 'webhooks.removeOldDeliveries',
  retry: { delaysMs: [60_000] },
  async run(app) {
    if (!(await isClockSteady(app))) return;
    await deliveryStore(app).deleteMany({ expireAt: { $lte: new Date(app.clock.now()) } });
  },
};
