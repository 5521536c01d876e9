import { testScenes } from "./suite.js";

testScenes(2);
