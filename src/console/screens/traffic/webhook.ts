/** Why nothing is sent to a webhook, in words. */
export const REASONS = {
  requested: 'disabled',
  gone: 'disabled: the receiver answered 410',
  failing: 'disabled: it failed for too long',
} as const;
