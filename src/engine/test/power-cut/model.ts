/** Documents of a group are stored together: all of them or none. */
export const GROUP_SIZE = 40;

/** A document of the store whose power is cut. */
export interface Entry {
  _id: string;
  slot: string;
  n: number;
  group: number;
  isDeleted: boolean;
  text: string;
}

/** A change that was acknowledged: the document's `n` from then on, null when it is gone; or a group that is there. */
export type Acknowledged = { id: string; n: number | null } | { group: number };
