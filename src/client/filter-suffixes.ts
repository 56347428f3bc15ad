/** The ends of a filter's names by what their values are: `views_gt`, `tags_in`. */
export interface Suffixes {
  ordered: '_gt' | '_gte' | '_lt' | '_lte';
  same: '_ne';
  list: '_in';
  flag: '_exists';
  text: '_startswith' | '_regex';
  area: '_near' | '_within';
}

/** Filters that no stream takes. */
export const POLLED: RegExp = /(_regex)=/;
