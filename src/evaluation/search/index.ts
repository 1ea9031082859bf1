// Search: stretches of the rotary hands that read a text better than any rule's.

export {
  type Candidate,
  type EvolutionOptions,
  evolve,
  type Generation,
  type Tried,
} from "./evolution.ts";
export { longRopeOf, type Rule, type SearchSpace, searchSpace } from "./rules.ts";
export {
  type CheckedLoss,
  runSearch,
  type SearchJob,
  type SearchProgress,
  type SearchResult,
  searchCost,
  searchWindows,
} from "./search.ts";
