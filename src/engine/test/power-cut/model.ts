/** Documents of a group are stored together: all of them or none. */
export const GROUP_SIZE = 40;

/** A document of the store whose power is cut. */
export interface Entry {
  _id: string;
  slot: string;
  n: number;
  /** Empty: it was stored alone. */
  group: string;
  isDeleted: boolean;
  text: string;
}

/** A change: the document's `n` from then on, null when it is gone; or a group that is there. */
export type Change = { id: string; n: number | null } | { group: string };

/** A line of the file `acknowledged`: the change begins, or was acknowledged. Each hand makes one after the other. */
export interface Line {
  readonly hand: string;
  readonly change: Change;
  readonly isDone: boolean;
}
