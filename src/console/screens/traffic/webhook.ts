export interface Webhook {
  id: string;
  url: string;
  events: string[];
  description: string;
  enabled: boolean;
  disabledReason: 'requested' | 'gone' | 'failing' | null;
  failingSince: string | null;
}

export interface Delivery {
  id: string;
  webhookId: string;
  event: string;
  state: 'pending' | 'delivered' | 'failed';
  documentId: string | null;
  createdAt: string;
  attempts: { at: string; durationMs: number; status: number | null; response: string; error: string | null }[];
  /** Null when it is no longer kept; not in lists. */
  body?: string | null;
}

/** Why nothing is sent to a webhook, in words. */
export const REASONS = {
  requested: 'disabled',
  gone: 'disabled: the receiver answered 410',
  failing: 'disabled: it failed for too long',
} as const;

/** A page of deliveries, and where the next one begins. */
export interface Deliveries {
  items: Delivery[];
  next: string | null;
}
